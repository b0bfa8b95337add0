import type { Engine } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, equal, ok, present } from "../expect.ts";
import { type Scene, textOf } from "../scene.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;
/** Items of a key that may run between the call that waits for a hold and the hold: a few do while the call is on its way. */
const MOST_BEFORE = 200;
const LINE = 800;
const ROUNDS = 3;

/** Holds that wait for their key. */
export const held: readonly ConformanceCase[] = casesOf("G1", {
  "a hold waits for the running item, and keeps workers out": async (scene) => {
    const other = await scene.open();
    await scene.submit("k", { text: "first" });
    await scene.submit("k", { text: "second" });
    const first = await scene.claimOne();
    let isHeld = false;
    const holding = scene.heldLater("k", undefined, other).finally(() => (isHeld = true));
    equal(await scene.claimReady(), [], "A key in work is not ready");
    ok(!isHeld, "A key in work is not held");
    await scene.done(first);
    const lease = present(await holding, "A hold that waited is granted when the item is done");
    ok(lease.fence > first.lease.fence, "The fence of a hold is greater than that of the item before it");
    equal(await scene.claimReady(), [], "A held key is not handed out");
    await scene.finish({ lease }, { type: "release" }, other);
    equal(textOf(await scene.claimOne()), "second", "After the hold the next item is handed out");
  },

  "a hold waits for another hold": async (scene) => {
    const other = await scene.open();
    const first = present(await scene.hold("k"), "An idle key can be held");
    const holding = [scene.heldLater("k", undefined, other), scene.heldLater("k")];
    await scene.finish({ lease: first }, { type: "release" });
    const second = present(await Promise.race(holding), "One of those who waited has the key");
    equal(await scene.hold("k"), undefined, "A hold on a key that is held");
    await scene.finish({ lease: second }, { type: "release" });
    const fences = (await Promise.all(holding)).map((lease) => present(lease, "Both have had the key").fence);
    equal(new Set([first.fence, ...fences]).size, 3, "Every hold has a fence of its own");
  },

  "a hold that waits is not kept waiting by a long line": async (scene) => {
    const other = await scene.open();
    await scene.engine.submit(Array.from({ length: LINE }, () => scene.entry("k")));
    const finished = new AbortController();
    const third = await scene.open();
    // Some of them always wait for the next item.
    const handles = [scene.engine, third, scene.engine, third, scene.engine, third];
    const working = workThrough(scene, handles, finished.signal);
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = working.count;
      const lease = present(await scene.heldLater("k", undefined, other), "A busy key can be held");
      ok(working.count - before < MOST_BEFORE, `Before a hold came to its turn, ${working.count - before} items ran`);
      await scene.finish({ lease }, { type: "release" }, other);
    }
    finished.abort();
    await working.ended;
  },

  "a hold that waits gets a key whose lease ran out, not before": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    const before = scene.clock.monotonic();
    await scene.claimOne({ leaseMs: scene.leaseMs });
    ok((await scene.heldLater("k", undefined, other)) !== undefined, "A key whose lease ran out can be held");
    atLeast(scene.clock.monotonic() - before, scene.leaseMs - ROUNDING_MS, "Milliseconds until a leased key is held");
    equal(await scene.claimReady(), [], "A held key is not handed out");
  },

  "a hold that waits gets a key whose hold ran out, not before": async (scene) => {
    const other = await scene.open();
    const before = scene.clock.monotonic();
    ok((await scene.hold("k", scene.leaseMs, other)) !== undefined, "An idle key can be held");
    ok((await scene.heldLater("k")) !== undefined, "A key whose hold ran out can be held");
    atLeast(
      scene.clock.monotonic() - before,
      scene.leaseMs - ROUNDING_MS,
      "Milliseconds until a held key is held again",
    );
  },

  "a hold that was waited for runs out like any other": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    await scene.submit("k", { text: "second" });
    const first = await scene.claimOne();
    const holding = scene.heldLater("k", scene.leaseMs, other);
    await scene.report();
    await scene.done(first);
    ok((await holding) !== undefined, "A hold that waited is granted");
    equal(textOf(await scene.claimOne()), "second", "When the hold has run out, the next item is handed out");
  },

  "a hold that is given up leaves nothing": async (scene) => {
    const other = await scene.open();
    await scene.submit("k", { text: "first" });
    await scene.submit("k", { text: "second" });
    const first = await scene.claimOne();
    for (const engine of [scene.engine, other]) {
      const impatience = new AbortController();
      const request = { queue: scene.queue, key: "k", worker: "holder", leaseMs: scene.leaseMs };
      const holding = engine.hold({ ...request, signal: impatience.signal });
      // A later call through the same handle is answered after it has reached the store.
      await engine.queues({ queue: scene.queue });
      impatience.abort();
      equal(await holding, undefined, "A hold that was given up");
    }
    await scene.done(first);
    const second = await scene.claimOne();
    equal(textOf(second), "second", "The next item is handed out");
    await scene.done(second);
    equal(await scene.engine.keys({ queue: scene.queue, limit: 10 }), [], "Keys that are left");
  },

  "a handle that closes gives up its holds": async (scene) => {
    const other = await scene.open();
    await scene.submit("k", { text: "first" });
    await scene.submit("k", { text: "second" });
    const first = await scene.claimOne();
    const holding = other.hold({
      queue: scene.queue,
      key: "k",
      worker: "holder",
      leaseMs: scene.leaseMs,
      signal: scene.patience(),
    });
    await other.queues({ queue: scene.queue });
    await scene.close(other);
    equal(await holding, undefined, "A hold through a handle that closes");
    await scene.done(first);
    equal(textOf(await scene.claimOne()), "second", "The next item is handed out");
  },

  "holds that wait and claims never overlap": async (scene) => {
    const handles = [await scene.open(), await scene.open()];
    await scene.engine.submit(Array.from({ length: 20 }, () => scene.entry("k")));
    let inside = 0;
    const enter = (): void => {
      inside += 1;
      equal(inside, 1, "Holders and workers of one key at a time");
    };
    const holding = handles.map(async (engine) => {
      for (let count = 0; count < 5; count += 1) {
        const lease = present(await scene.heldLater("k", undefined, engine), "A hold that waits is granted");
        enter();
        await scene.report();
        inside -= 1;
        await scene.finish({ lease }, { type: "release" }, engine);
      }
    });
    const working = async (): Promise<void> => {
      for (let count = 0; count < 20; count += 1) {
        const grant = await scene.claimOne();
        enter();
        await scene.report();
        inside -= 1;
        await scene.done(grant);
      }
    };
    await Promise.all([...holding, working()]);
  },
});

interface Working {
  count: number;
  ended: Promise<unknown>;
}

/** Workers with nothing else to do take one item after the other, until they are told to stop. */
function workThrough(scene: Scene, handles: readonly Engine[], signal: AbortSignal): Working {
  const working: Working = { count: 0, ended: Promise.resolve() };
  const work = async (engine: Engine): Promise<void> => {
    while (!signal.aborted) {
      for (const grant of await scene.claim({ engine, signal })) {
        working.count += 1;
        await scene.done(grant, engine);
      }
    }
  };
  working.ended = Promise.all(handles.map(work));
  // A case that fails before it waits for them says why itself.
  working.ended.catch(() => undefined);
  return working;
}
