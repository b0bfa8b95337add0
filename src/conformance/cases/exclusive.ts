import { setImmediate as nextTurn } from "node:timers/promises";
import type { Ending, Engine } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, equal, ok, present } from "../expect.ts";
import { keysOf, type Scene, textOf } from "../scene.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;

export const exclusive: readonly ConformanceCase[] = casesOf("G1", {
  "a key in work is not handed out again": async (scene) => {
    await scene.submit("k", { text: "first" });
    await scene.submit("k", { text: "second" });
    const first = await scene.claimOne();
    equal(await scene.claimReady(), [], "While the key is in work, its next item is not ready");
    await scene.done(first);
    equal(textOf(await scene.claimOne()), "second", "The next item after the first is done");
  },

  "a key in work is not handed out at another level": async (scene) => {
    await scene.submit("k");
    await scene.claimOne();
    await scene.submit("k", { level: "high" });
    await scene.submit("k", { level: "low" });
    equal(await scene.claimReady(), [], "Other levels of a key in work are not ready");
  },

  "one claim never takes a key twice": async (scene) => {
    await scene.engine.submit(["a", "a", "b", "a", "b"].map((key) => scene.entry(key)));
    equal(keysOf(await scene.claimReady()), ["a", "b"], "A claim of many takes each key once");
  },

  "of two claims at once one gets the key": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    await scene.submit("k");
    const claims = [scene.claimOne(), scene.claimOne({ engine: other })];
    const first = await Promise.race(claims);
    equal(first.item.key, "k", "The claim that was answered first has the key");
    await scene.submit("other");
    const both = keysOf(await Promise.all(claims));
    equal(both.toSorted(), ["k", "other"], "Two claims at once share no key");
  },

  "a retried item goes to one claim": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    const grant = await scene.claimOne();
    const claims = [scene.claimOne(), scene.claimOne({ engine: other })];
    await scene.retry(grant);
    await Promise.race(claims);
    await scene.submit("other");
    equal(keysOf(await Promise.all(claims)).toSorted(), ["k", "other"], "A retried item is handed out once");
  },

  "a held key is not worked on": async (scene) => {
    const lease = present(await scene.hold("k"), "An idle key can be held");
    await scene.submit("k");
    equal(await scene.claimReady(), [], "A held key is not handed out");
    await scene.finish({ lease }, { type: "release" });
    equal((await scene.claimOne()).item.key, "k", "After the hold the key is handed out");
  },

  "a key that waits can be held, and keeps its items": async (scene) => {
    await scene.submit("k", { text: "waiting" });
    const lease = present(await scene.hold("k"), "A key with waiting items can be held");
    equal(await scene.claimReady(), [], "A held key is not handed out");
    await scene.submit("k", { text: "later" });
    await scene.finish({ lease }, { type: "release" });
    const first = await scene.claimOne();
    equal(textOf(first), "waiting", "What waited before the hold goes first");
    await scene.done(first);
    equal(textOf(await scene.claimOne()), "later", "What came during the hold goes next");
  },

  "a key in work cannot be held": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    const grant = await scene.claimOne();
    equal(await scene.hold("k"), undefined, "A hold on a key in work");
    equal(await scene.hold("k", undefined, other), undefined, "A hold on a key in work, from another handle");
    await scene.done(grant);
    ok((await scene.hold("k", undefined, other)) !== undefined, "After the work the key can be held");
  },

  "of many holds at once one is granted": async (scene) => {
    const handles = [scene.engine, await scene.open()];
    const holds = handles.flatMap((handle) => Array.from({ length: 8 }, () => scene.hold("k", undefined, handle)));
    const granted = (await Promise.all(holds)).filter((lease) => lease !== undefined);
    equal(granted.length, 1, "Holds granted on one key at a time");
  },

  "a hold that ran out frees the key, not before": async (scene) => {
    const before = scene.clock.monotonic();
    ok((await scene.hold("k", scene.leaseMs)) !== undefined, "An idle key can be held");
    await scene.submit("k");
    await scene.claimOne();
    atLeast(
      scene.clock.monotonic() - before,
      scene.leaseMs - ROUNDING_MS,
      "Milliseconds until a held key is handed out",
    );
  },

  "a lease that ran out has exactly one taker, not before": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    const before = scene.clock.monotonic();
    await scene.claimOne({ leaseMs: scene.leaseMs });
    const claims = [scene.engine, other, scene.engine, other].map((engine) => scene.claimOne({ engine }));
    equal((await Promise.race(claims)).item.key, "k", "The key is handed out again");
    atLeast(
      scene.clock.monotonic() - before,
      scene.leaseMs - ROUNDING_MS,
      "Milliseconds until a leased key is handed out",
    );
    for (const key of ["other1", "other2", "other3"]) await scene.submit(key);
    const keys = keysOf(await Promise.all(claims));
    equal(keys.toSorted(), ["k", "other1", "other2", "other3"], "A key whose lease ran out has one taker");
  },

  "a renewed lease outlives its first deadline": async (scene) => {
    await scene.submit("k");
    const { lease } = await scene.claimOne({ leaseMs: scene.leaseMs });
    ok((await scene.renew(lease)).ok, "A current lease can be renewed");
    await scene.letLeasesRunOut();
    equal(await scene.claimReady(), [], "A key whose lease was renewed is not ready");
    equal(await scene.hold("k"), undefined, "A hold on a key whose lease was renewed");
  },

  "many claims on few keys never overlap": async (scene) => {
    const handles = [scene.engine, await scene.open()];
    await crowd(scene, handles, 4, 40);
  },

  "holds and claims never overlap": async (scene) => {
    const other = await scene.open();
    await scene.engine.submit(Array.from({ length: 30 }, () => scene.entry("k")));
    let inside = 0;
    const visit = async (): Promise<void> => {
      inside += 1;
      equal(inside, 1, "Holders and workers of one key at a time");
      await nextTurn();
      inside -= 1;
    };
    const working = new AbortController();
    let holds = 0;
    const holding = async (): Promise<void> => {
      // Not for ever: whoever holds again and again may well keep a worker out.
      while (!working.signal.aborted && holds < 30) {
        const lease = await scene.hold("k", undefined, other);
        if (lease === undefined) await nextTurn();
        else {
          holds += 1;
          await visit();
          await scene.finish({ lease }, { type: "release" }, other);
        }
      }
    };
    const worked = async (): Promise<void> => {
      for (let count = 0; count < 30; count += 1) {
        const grant = await scene.claimOne();
        await visit();
        await scene.done(grant);
      }
    };
    await Promise.all([worked().finally(() => working.abort()), holding()]);
  },
});

/** Several claimers work on few keys until all is done, and look over one another's shoulders. */
async function crowd(scene: Scene, handles: readonly Engine[], keyCount: number, itemCount: number): Promise<void> {
  const items = Array.from({ length: itemCount }, (_, index) =>
    scene.entry(`k${index % keyCount}`, { text: String(index) }),
  );
  await scene.engine.submit(items);
  const inWork = new Set<string>();
  const done = new Set<string>();
  const finished = new AbortController();
  let turns = 0;
  const work = async (engine: Engine): Promise<void> => {
    const signal = AbortSignal.any([finished.signal, scene.patience()]);
    while (!signal.aborted) {
      const grants = await scene.claim({ engine, max: 2, signal });
      for (const { item } of grants) {
        ok(!inWork.has(item.key), `Key ${item.key} was handed out while it was in work`);
        inWork.add(item.key);
      }
      await nextTurn();
      for (const grant of grants) {
        turns += 1;
        const ending: Ending =
          turns % 5 === 0
            ? { type: "retry", delayMs: 0, place: "keep", failure: { message: "again" } }
            : turns % 7 === 0
              ? { type: "release" }
              : { type: "done" };
        inWork.delete(grant.item.key);
        await scene.finish(grant, ending, engine);
        if (ending.type === "done") done.add(textOf(grant));
      }
      if (done.size === itemCount) finished.abort();
    }
  };
  await Promise.all(handles.flatMap((engine) => [work(engine), work(engine), work(engine)]));
  equal(done.size, itemCount, "Items that were done");
}
