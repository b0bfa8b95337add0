import type { Ending } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { equal } from "../expect.ts";
import { keysOf, textOf } from "../scene.ts";

const OTHERS = ["a", "b", "c"];

export const independent: readonly ConformanceCase[] = casesOf("G6", {
  "a key in work with a long line does not hold up others": async (scene) => {
    await scene.engine.submit(Array.from({ length: 50 }, () => scene.entry("hot")));
    await scene.claimOne();
    for (const key of OTHERS) await scene.submit(key);
    equal(keysOf(await scene.claimReady()), OTHERS, "Keys that are ready");
  },

  "an urgent key in work does not hold up less urgent ones": async (scene) => {
    await scene.engine.submit(Array.from({ length: 10 }, () => scene.entry("hot", { level: "high" })));
    await scene.claimOne();
    for (const key of OTHERS) await scene.submit(key, { level: "low" });
    equal(keysOf(await scene.claimReady()), OTHERS, "Keys that are ready");
  },

  "a failing key does not hold up others": async (scene) => {
    await scene.submit("failing");
    await scene.submit("failing");
    for (const key of OTHERS) await scene.submit(key);
    const failing = await scene.claimOne();
    equal(failing.item.key, "failing", "The key that came first");
    await scene.retry(failing);
    equal(
      keysOf(await scene.claimReady()),
      [...OTHERS, "failing"],
      "A key that failed goes behind those that are ready",
    );
  },

  "a key that waits out a back-off does not hold up others": async (scene) => {
    for (const key of ["failing", ...OTHERS]) await scene.submit(key, { text: key });
    await scene.retry(await scene.claimOne(), 3_600_000);
    equal(keysOf(await scene.claimReady()), OTHERS, "Keys that are ready");
  },

  "many keys that wait do not hide one that is ready": async (scene) => {
    const count = 60;
    await scene.engine.submit(Array.from({ length: count }, (_, index) => scene.entry(`failing${index}`)));
    const ending: Ending = { type: "retry", delayMs: 3_600_000, place: "keep", failure: { message: "not yet" } };
    const grants = await scene.claimCount(count);
    await scene.engine.settle(grants.map(({ lease }) => ({ lease, ending })));
    await scene.submit("fine");
    equal(keysOf(await scene.claimReady()), ["fine"], "Keys that are ready");
  },

  "a paused key does not hold up others": async (scene) => {
    await scene.engine.pause({ queue: scene.queue, key: "paused", paused: true });
    await scene.submit("paused", { level: "high" });
    for (const key of OTHERS) await scene.submit(key);
    equal(keysOf(await scene.claimReady()), OTHERS, "Keys that are ready");
    await scene.engine.pause({ queue: scene.queue, key: "paused", paused: false });
    equal(keysOf(await scene.claimReady()), ["paused"], "The key that goes on");
  },

  "what runs on a paused key can be finished, and the rest waits": async (scene) => {
    await scene.submit("k", { text: "running" });
    await scene.submit("k", { text: "waiting" });
    const running = await scene.claimOne();
    await scene.engine.pause({ queue: scene.queue, key: "k", paused: true });
    await scene.done(running);
    equal(await scene.claimReady(), [], "Keys that are ready");
    await scene.engine.pause({ queue: scene.queue, key: "k", paused: false });
    equal(textOf(await scene.claimOne()), "waiting", "What goes on");
  },

  "a paused queue does not hold up others": async (scene) => {
    const other = await scene.newQueue();
    await scene.submit("k");
    await scene.engine.pause({ queue: scene.queue, paused: true });
    await scene.submit("k", { queue: other });
    equal((await scene.claimOne({ queue: other })).item.queue, other, "The queue that goes on");
    const { paused, waiting } = await scene.report();
    equal([paused, waiting], [true, 1], "The paused queue, and what waits in it");
    await scene.engine.pause({ queue: scene.queue, paused: false });
    equal((await scene.claimOne()).item.key, "k", "What goes on");
  },

  "a held key does not hold up others": async (scene) => {
    await scene.hold("held");
    for (const key of ["held", ...OTHERS]) await scene.submit(key);
    equal(keysOf(await scene.claimReady()), OTHERS, "Keys that are ready");
  },

  "delayed items do not hold up others": async (scene) => {
    await scene.submit("a", { delayMs: 3_600_000 });
    for (const key of OTHERS) await scene.submit(key);
    equal(keysOf(await scene.claimReady()), OTHERS, "Keys that are ready");
  },

  "one hot key takes turns with the others": async (scene) => {
    const hot = Array.from({ length: 1_000 }, (_, index) => scene.entry("hot", { text: `hot${index}` }));
    await scene.engine.submit(hot);
    for (const key of OTHERS) {
      await scene.submit(key);
      await scene.submit(key);
    }
    const keys: string[] = [];
    for (let count = 0; count < 9; count += 1) {
      const grant = await scene.claimOne();
      keys.push(grant.item.key);
      await scene.done(grant);
    }
    equal(keys, ["hot", ...OTHERS, "hot", ...OTHERS, "hot"], "Keys in the order in which they were handed out");
  },
});
