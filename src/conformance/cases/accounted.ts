import type { Outcome } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, atMost, equal, ok, present } from "../expect.ts";
import { type Scene, textOf } from "../scene.ts";

export const accounted: readonly ConformanceCase[] = casesOf("G4", {
  "done is reported with its result": async (scene) => {
    const before = scene.clock.wall();
    await scene.submit("k", { id: "item" });
    await scene.finish(await scene.claimOne(), { type: "done", result: { type: "text/plain", body: "painted" } });
    const outcome = await expectEnded(scene, "item", "done", 1);
    equal(outcome.result, { type: "text/plain", body: "painted" }, "The result");
    atLeast(outcome.at, before - 1, "The time of the end");
    atMost(outcome.at, scene.clock.wall() + 1, "The time of the end");
  },

  "a result of bytes is kept exactly": async (scene) => {
    const body = Uint8Array.from({ length: 256 }, (_, index) => index);
    await scene.submit("k", { id: "item" });
    await scene.finish(await scene.claimOne(), { type: "done", result: { type: "application/octet-stream", body } });
    const { result } = await expectEnded(scene, "item", "done", 1);
    ok(result?.body instanceof Uint8Array, "A result of bytes comes back as bytes");
    equal(Buffer.compare(result.body, body), 0, "Difference of the bytes");
  },

  "dead is reported with its failure": async (scene) => {
    await scene.submit("k", { id: "item" });
    await scene.retry(await scene.claimOne());
    const failure = { message: "no such car", code: "E_CAR", stack: "at paint" };
    await scene.finish(await scene.claimOne(), { type: "dead", failure });
    const outcome = await expectEnded(scene, "item", "dead", 2);
    equal(outcome.failure, failure, "The failure");
  },

  "cancelled by its worker is reported": async (scene) => {
    await scene.submit("k", { id: "item" });
    await scene.finish(await scene.claimOne(), { type: "cancelled" });
    await expectEnded(scene, "item", "cancelled", 1);
  },

  "replaced is reported": async (scene) => {
    await scene.submit("k", { id: "waiting" });
    await scene.submit("k", { id: "delayed", delayMs: 3_600_000 });
    const newest = await scene.submit("k", { id: "newest", mode: "latest" });
    equal(newest.replaced.toSorted(), ["delayed", "waiting"], "The items that were replaced");
    await expectEnded(scene, "waiting", "replaced", 0);
    await expectEnded(scene, "delayed", "replaced", 0);
    equal((await scene.find("newest"))?.state, "waiting", "The newest item");
  },

  "an item without id that is kept is reported under its given id": async (scene) => {
    const { id } = await scene.submit("k", { keepMs: 3_600_000 });
    ok(id.startsWith("@"), "A given id begins with @");
    await scene.done(await scene.claimOne());
    await expectEnded(scene, id, "done", 1);
  },

  "an item that is not kept is forgotten when it is done": async (scene) => {
    const { id } = await scene.submit("k");
    equal((await scene.find(id))?.state, "waiting", "The item while it waits");
    const grant = await scene.claimOne();
    equal((await scene.find(id))?.state, "running", "The item while it runs");
    await scene.done(grant);
    equal(await scene.find(id), undefined, "The item when it is done");
    equal(await scene.outcome(id), undefined, "Its outcome");
  },

  "a dead letter is reported, kept or not": async (scene) => {
    const { id } = await scene.submit("k");
    await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "no" } });
    await expectEnded(scene, id, "dead", 1);
  },

  "whoever waits for an outcome hears of it, whatever it is": async (scene) => {
    const other = await scene.open();
    const ids = ["done", "dead", "cancelled", "withdrawn", "replaced"];
    for (const id of ids) await scene.submit(id, { id });
    await scene.engine.pause({ queue: scene.queue, key: "withdrawn", paused: true });
    await scene.engine.pause({ queue: scene.queue, key: "replaced", paused: true });
    const waiting = ids.flatMap((id) => [scene.outcome(id), scene.outcome(id, other)]);
    for (const grant of await scene.claimReady()) {
      if (grant.item.id === "done") await scene.done(grant);
      if (grant.item.id === "dead") await scene.finish(grant, { type: "dead", failure: { message: "no" } });
      if (grant.item.id === "cancelled") await scene.finish(grant, { type: "cancelled" });
    }
    await scene.engine.cancel({ queue: scene.queue, id: "withdrawn" });
    await scene.submit("replaced", { mode: "latest" });
    const states = (await Promise.all(waiting)).map((outcome) => outcome?.state);
    const expected = ["done", "dead", "cancelled", "cancelled", "replaced"] as const;
    equal(
      states,
      expected.flatMap((state) => [state, state]),
      "The outcomes",
    );
  },

  "an outcome that nobody can tell is undefined": async (scene) => {
    equal(await scene.outcome("never-seen"), undefined, "The outcome of an item that was never submitted");
    equal(await scene.find("never-seen"), undefined, "An item that was never submitted");
    await scene.submit("k", { id: "item" });
    const impatience = new AbortController();
    const waiting = scene.engine.outcome({ queue: scene.queue, id: "item", signal: impatience.signal });
    impatience.abort();
    equal(await waiting, undefined, "The outcome, when waiting for it was given up");
  },

  "nothing is lost when holders vanish": async (scene) => {
    const texts = Array.from({ length: 12 }, (_, index) => String(index));
    await scene.engine.submit(texts.map((text) => scene.entry(`k${Number(text) % 4}`, { text })));
    // All four keys are taken, and their holders are never heard of again.
    await scene.claimCount(4, { leaseMs: scene.leaseMs });
    const done: string[] = [];
    while (done.length < texts.length) {
      for (const grant of await scene.claim({ max: 4 })) {
        await scene.done(grant);
        done.push(textOf(grant));
      }
    }
    equal(done.toSorted(), texts.toSorted(), "Items that were done");
    equal((await scene.report()).waiting, 0, "Items left");
  },

  "every accepted item is counted somewhere until it ends": async (scene) => {
    const accepted = 20;
    const items = Array.from({ length: accepted }, (_, index) =>
      scene.entry(`k${index % 5}`, { id: `item-${index}`, delayMs: index % 4 === 3 ? 3_600_000 : 0 }),
    );
    await scene.engine.submit(items);
    const grants = await scene.claimCount(5);
    const [done, dead, retried, released] = grants;
    await scene.done(present(done, "A grant"));
    await scene.finish(present(dead, "A grant"), { type: "dead", failure: { message: "no" } });
    await scene.retry(present(retried, "A grant"), 3_600_000);
    await scene.finish(present(released, "A grant"), { type: "release" });
    const { waiting, delayed, running, dead: letters, levels } = await scene.report();
    equal({ delayed, running, letters }, { delayed: 5, running: 1, letters: 1 }, "The counts");
    equal(waiting, accepted - 1 - 5 - 1 - 1, "Items that wait");
    equal(
      levels.reduce((sum, level) => sum + level.waiting, 0),
      waiting,
      "The sum over the levels",
    );
    const states = await Promise.all(items.map(async ({ id = "" }) => (await scene.find(id))?.state));
    const count = (wanted: string): number => states.filter((state) => state === wanted).length;
    const counted = ["waiting", "delayed", "running", "dead", "done"].map(count);
    equal(counted, [waiting, 5, 1, 1, 1], "Items found waiting, delayed, running, dead and done");
  },
});

async function expectEnded(scene: Scene, id: string, state: Outcome["state"], attempt: number): Promise<Outcome> {
  const report = present(await scene.find(id), `Item ${id} is remembered`);
  const outcome = present(await scene.outcome(id), `The outcome of item ${id} is remembered`);
  equal([report.state, report.attempt], [state, attempt], `State and attempt of item ${id}`);
  equal([outcome.state, outcome.attempt], [state, attempt], `Outcome and attempt of item ${id}`);
  equal(report.outcome, outcome, "The outcome that find reports");
  return outcome;
}
