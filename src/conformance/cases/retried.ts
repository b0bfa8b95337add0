import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, equal, present } from "../expect.ts";
import { type Scene, textOf } from "../scene.ts";
import { workOff } from "./ordered.ts";

/** Where an item stands that comes back. */
export const retried: readonly ConformanceCase[] = casesOf("G5", {
  "a retry keeps its place": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.retry(failing);
    equal(await workOff(scene, 3), ["first", "second", "third"], "The order");
  },

  "what stands behind a back-off waits": async (scene) => {
    const failing = await twoWaiting(scene);
    const before = scene.clock.wall();
    await scene.retry(failing, 150);
    await scene.submit("k", { text: "low", level: "low" });
    const again = await scene.claimOne();
    equal([textOf(again), again.item.attempt], ["first", 2], "What goes next");
    atLeast(scene.clock.wall() - before, 149, "Milliseconds of back-off");
    await scene.done(again);
    equal(await workOff(scene, 3), ["second", "third", "low"], "The order");
  },

  "an urgent item passes a back-off that began before it came": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.retry(failing, 3_600_000);
    await scene.submit("k", { text: "urgent", level: "high" });
    const urgent = await scene.claimOne();
    equal(textOf(urgent), "urgent", "What goes next");
    await scene.done(urgent);
    equal(await scene.claimReady(), [], "After it the back-off goes on");
    equal((await scene.report()).waiting, 3, "Items that wait");
  },

  "an urgent item passes a back-off that begins after it came": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.submit("k", { text: "urgent", level: "high" });
    await scene.retry(failing, 200);
    const urgent = await scene.claimOne();
    equal(textOf(urgent), "urgent", "What goes next");
    await scene.done(urgent);
    const again = await scene.claimOne();
    equal([textOf(again), again.item.attempt], ["first", 2], "What goes after it, when the back-off is over");
    await scene.done(again);
    equal(await workOff(scene, 2), ["second", "third"], "The order");
  },

  "a back-off that is over is not reported any more": async (scene) => {
    const { id } = await scene.submit("k", { id: "item" });
    await scene.retry(await scene.claimOne(), 300);
    await scene.submit("k", { text: "urgent", level: "high" });
    // What runs before it keeps it waiting for longer than its back-off.
    const urgent = await scene.claimOne();
    equal(textOf(urgent), "urgent", "What goes next");
    await scene.letPass(1_400);
    const { state, dueAt, attempt } = present(await scene.find(id), "The item is known");
    equal([state, dueAt, attempt], ["waiting", undefined, 1], "The item");
    await scene.done(urgent);
    equal((await scene.claimOne()).item.id, id, "What goes after it");
  },

  "a retry that yields lets others pass": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.retry(failing, 3_600_000, "yield");
    equal((await scene.report()).delayed, 1, "Items that are delayed");
    equal(await workOff(scene, 2), ["second", "third"], "What goes on");
    equal(await scene.claimReady(), [], "What else is ready");
  },

  "a retry that yielded comes back before those that wait": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.retry(failing, 500, "yield");
    const second = await scene.claimOne();
    equal(textOf(second), "second", "What goes on meanwhile");
    await scene.letPass(1_600);
    await scene.done(second);
    const again = await scene.claimOne();
    equal([textOf(again), again.item.attempt], ["first", 2], "What comes back");
    await scene.done(again);
    equal(await workOff(scene, 1), ["third"], "What waited");
  },

  "a release keeps its place and does not count": async (scene) => {
    const running = await twoWaiting(scene);
    await scene.finish(running, { type: "release" });
    const again = await scene.claimOne();
    equal([textOf(again), again.item.attempt], ["first", 1], "What goes next");
    await scene.done(again);
    equal(await workOff(scene, 2), ["second", "third"], "The order");
  },

  "an item whose lease ran out keeps its place": async (scene) => {
    const running = await twoWaiting(scene, scene.leaseMs);
    const again = await scene.claimOne();
    equal([textOf(again), again.item.attempt], ["first", running.item.attempt + 1], "What goes next");
    await scene.done(again);
    equal(await workOff(scene, 2), ["second", "third"], "The order");
  },

  "a dead or cancelled item makes way for the next": async (scene) => {
    const first = await twoWaiting(scene);
    await scene.finish(first, { type: "dead", failure: { message: "no" } });
    const second = await scene.claimOne();
    equal(textOf(second), "second", "What goes after a dead letter");
    await scene.finish(second, { type: "cancelled" });
    equal(await workOff(scene, 1), ["third"], "What goes after a cancelled item");
  },

  "a back-off that is cancelled makes way for the next": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.retry(failing, 3_600_000);
    await scene.engine.cancel({ queue: scene.queue, id: failing.item.id });
    equal(await workOff(scene, 2), ["second", "third"], "The order");
  },

  "a hold on a key that waits out a back-off leaves it waiting": async (scene) => {
    const failing = await twoWaiting(scene);
    await scene.retry(failing, 3_600_000);
    const lease = present(await scene.hold("k"), "A key that waits out a back-off can be held");
    await scene.finish({ lease }, { type: "release" });
    equal(await scene.claimReady(), [], "What is ready after the hold");
    equal((await scene.engine.keys({ queue: scene.queue, limit: 10 }))[0]?.state, "blocked", "The key");
  },
});

/** The first of three items of one key is in work. */
async function twoWaiting(scene: Scene, leaseMs?: number): ReturnType<Scene["claimOne"]> {
  for (const text of ["first", "second", "third"]) await scene.submit("k", { text });
  return await scene.claimOne(leaseMs === undefined ? {} : { leaseMs });
}
