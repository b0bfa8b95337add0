import { type BatonError, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import type { SubmitResult } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, atMost, equal, ok, present, refusedWith } from "../expect.ts";
import { keysOf } from "../scene.ts";

export const bounded: readonly ConformanceCase[] = casesOf("G10", {
  "a key takes as many items as its limit, and says when it is full": async (scene) => {
    const limits = { keyLimit: 3 };
    await scene.submit("k", limits);
    await scene.submit("k", { ...limits, level: "high" });
    await scene.submit("k", { ...limits, delayMs: 3_600_000 });
    const error = refusal(await scene.trySubmit("k", limits), "KEY_FULL");
    ok(error instanceof KeyFull, "The refusal is a KeyFull");
    equal([error.queue, error.key, error.limit], [scene.queue, "k", 3], "What the refusal says");
    ok((await scene.trySubmit("other", limits)).ok, "Another key is not full");
    const { waiting, delayed } = await scene.report();
    equal([waiting, delayed], [3, 1], "Items that wait and that are delayed");
  },

  "what runs does not count towards the limit of its key": async (scene) => {
    await scene.submit("k", { keyLimit: 1 });
    const grant = await scene.claimOne();
    await scene.submit("k", { keyLimit: 1 });
    refusal(await scene.trySubmit("k", { keyLimit: 1 }), "KEY_FULL");
    await scene.done(grant);
    refusal(await scene.trySubmit("k", { keyLimit: 1 }), "KEY_FULL");
    await scene.done(await scene.claimOne());
    await scene.submit("k", { keyLimit: 1 });
  },

  "a queue takes as many items as its limit, and says when it is full": async (scene) => {
    const limits = { queueLimit: 3 };
    await scene.submit("a", limits);
    await scene.submit("b", { ...limits, delayMs: 3_600_000 });
    await scene.submit("c", limits);
    const error = refusal(await scene.trySubmit("d", limits), "QUEUE_FULL");
    ok(error instanceof QueueFull, "The refusal is a QueueFull");
    equal([error.queue, error.limit], [scene.queue, 3], "What the refusal says");
    refusal(await scene.trySubmit("d", { ...limits, mode: "strict" }), "QUEUE_FULL");
    refusal(await scene.trySubmit("d", { ...limits, mode: "latest" }), "QUEUE_FULL");
    await scene.done(await scene.claimOne());
    await scene.submit("d", limits);
  },

  "a batch is refused item by item": async (scene) => {
    const entries = ["k", "k", "k", "other"].map((key) => scene.entry(key, { keyLimit: 2 }));
    const results = await scene.engine.submit([
      ...entries,
      scene.entry("k2", { level: "unheard-of" }),
      scene.entry("k3"),
    ]);
    equal(
      results.map(({ ok: accepted }) => accepted),
      [true, true, false, true, false, true],
      "What was accepted",
    );
    equal((await scene.report()).waiting, 4, "Items that wait");
  },

  "mode strict refuses a key that has anything": async (scene) => {
    await scene.submit("waiting");
    await scene.submit("delayed", { delayMs: 3_600_000 });
    await scene.hold("held");
    await scene.submit("blocked", { level: "high" });
    await scene.retry(await scene.claimOne(), 3_600_000);
    await scene.submit("running", { level: "high" });
    await scene.claimOne();
    for (const key of ["waiting", "delayed", "held", "blocked", "running"]) {
      const error = refusal(await scene.trySubmit(key, { mode: "strict" }), "KEY_BUSY");
      ok(error instanceof KeyBusy, "The refusal is a KeyBusy");
      equal([error.queue, error.key], [scene.queue, key], "What the refusal says");
    }
    await scene.submit("idle", { mode: "strict" });
  },

  "mode strict accepts on a key that is paused and has nothing": async (scene) => {
    for (const key of ["plain", "named"]) {
      await scene.engine.pause({ queue: scene.queue, key, paused: true });
      await scene.submit(key, { mode: "strict", ...(key === "named" ? { id: "item" } : {}) });
      refusal(await scene.trySubmit(key, { mode: "strict" }), "KEY_BUSY");
    }
  },

  "mode strict accepts again when the key is free": async (scene) => {
    await scene.submit("k", { mode: "strict" });
    const grant = await scene.claimOne();
    refusal(await scene.trySubmit("k", { mode: "strict" }), "KEY_BUSY");
    await scene.done(grant);
    await scene.submit("k", { mode: "strict" });
    const lease = present(await scene.hold("other"), "An idle key can be held");
    await scene.finish({ lease }, { type: "release" });
    await scene.submit("other", { mode: "strict" });
  },

  "of many strict submissions at once one is accepted": async (scene) => {
    const handles = [scene.engine, await scene.open()];
    const submissions = handles.flatMap((engine) =>
      Array.from({ length: 8 }, () => scene.trySubmit("k", { mode: "strict" }, engine)),
    );
    const accepted = (await Promise.all(submissions)).filter((result) => result.ok);
    equal(accepted.length, 1, "Submissions that were accepted");
  },

  "mode latest never grows": async (scene) => {
    for (let count = 0; count < 20; count += 1) await scene.submit("k", { mode: "latest", keyLimit: 1, queueLimit: 1 });
    equal((await scene.report()).waiting, 1, "Items that wait");
    await scene.claimOne();
    for (let count = 0; count < 20; count += 1) await scene.submit("k", { mode: "latest", keyLimit: 1, queueLimit: 1 });
    const { waiting, running } = await scene.report();
    equal([waiting, running], [1, 1], "Items that wait and that run");
  },

  "a claim never takes more than it asked for": async (scene) => {
    await scene.engine.submit(Array.from({ length: 30 }, (_, index) => scene.entry(`k${index}`)));
    let taken = 0;
    for (const max of [1, 2, 5, 7, 15]) {
      const grants = await scene.claim({ max });
      atMost(grants.length, max, "Grants");
      taken += grants.length;
      const { running } = await scene.report();
      atLeast(running, taken, "Items in work");
      // What was not started in time for its claim is kept for the next for a moment.
      atMost(running, taken + max - grants.length, "Items in work");
    }
  },

  "a waiting claim never takes more than it asked for": async (scene) => {
    const claims = [2, 3].map((max) => scene.claim({ max }));
    await scene.engine.submit(Array.from({ length: 10 }, (_, index) => scene.entry(`k${index}`)));
    const taken = (await Promise.all(claims)).map((grants) => grants.length);
    const { running, waiting } = await scene.report();
    atLeast(
      running,
      taken.reduce((sum, count) => sum + count, 0),
      "Items in work",
    );
    atMost(running, 5, "Items in work");
    equal(running + waiting, 10, "Items in all");
  },

  "an unknown level is refused": async (scene) => {
    refusal(await scene.trySubmit("k", { level: "unheard-of" }), "INVALID_INPUT");
    equal((await scene.report()).waiting, 0, "Items that wait");
  },

  "other levels than the stored ones are refused": async (scene) => {
    const { queue } = scene;
    equal((await scene.engine.declare({ queue })).levels, ["high", "normal", "low"], "The stored levels");
    const other = await scene.open();
    for (const levels of [
      ["low", "normal", "high"],
      ["high", "normal"],
      ["high", "normal", "low", "lower"],
    ]) {
      await refusedWith(other.declare({ queue, levels }), "LEVELS_DIFFER", `Declaring ${levels.join(", ")}`);
    }
    const same = await other.declare({ queue, levels: ["high", "normal", "low"] });
    equal(same.levels, ["high", "normal", "low"], "The stored levels");
  },

  "an idle key costs nothing": async (scene) => {
    const keys = Array.from({ length: 50 }, (_, index) => `k${index}`);
    await scene.engine.submit(keys.map((key) => scene.entry(key)));
    const grants = await scene.claimCount(50);
    equal(keysOf(grants).toSorted(), keys.toSorted(), "Keys that were handed out");
    await scene.engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } as const })));
    equal(await scene.engine.keys({ queue: scene.queue, limit: 100 }), [], "Keys that are listed");
  },
});

function refusal(result: SubmitResult, code: BatonError["code"]): BatonError {
  ok(!result.ok, `A submission that must be refused with ${code} was accepted`);
  equal(result.error.code, code, "The code of the refusal");
  return result.error;
}
