import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { never } from "../../test/scripted-engine.ts";
import { setStage, type Stage } from "../../test/worker-stage.ts";
import type { Worker } from "../client/worker.ts";
import type { StopReport } from "./endings-told.ts";

/** Longer than any handler gets after its signal fired. */
const ABORT_WAIT_MS = 10_000;

async function submitKeys({ queue }: Stage, count: number, payload: unknown): Promise<void> {
  for (let key = 1; key <= count; key += 1) await queue.submit(`${JSON.stringify(payload)} ${key}`, payload);
}

async function stopAndWait({ clock }: Stage, worker: Worker): Promise<StopReport> {
  const stopped = worker.stop({ grace: 0 });
  await clock.pass(ABORT_WAIT_MS);
  return await stopped;
}

describe("keys that were claimed before there was a slot for them", () => {
  test("go back after 20 ms, so that others can have them", async (context) => {
    const stage = setStage();
    await submitKeys(stage, 4, "quick");
    await submitKeys(stage, 8, "slow");
    const slow = Promise.withResolvers<void>();
    const worker = stage.queue.work(({ payload }) => (payload === "quick" ? undefined : slow.promise), {
      concurrency: 2,
    });
    context.after(() => stopAndWait(stage, worker));
    await stage.clock.pass(19);
    const kept = await stage.queue.status();
    assert.deepEqual([kept.running, kept.waiting], [8, 0], "two run, and six are kept");
    await stage.clock.pass(1);
    const after = await stage.queue.status();
    assert.deepEqual([after.running, after.waiting], [2, 6]);
    slow.resolve();
  });

  test("are asked for by the half, not one by one", async (context) => {
    const stage = setStage();
    await submitKeys(stage, 100, "quick");
    const worker = stage.queue.work(() => new Promise<void>((resolve) => stage.clock.setTimer(2.5, resolve)), {
      concurrency: 2,
    });
    context.after(() => stopAndWait(stage, worker));
    await stage.clock.pass(75);
    // Two slots get through 8 in 10 ms.
    const asked = stage.engine.claims.slice(5).map(({ max }) => max);
    assert.deepEqual(new Set(asked), new Set([4]));
    assert.ok(asked.length >= 5, `it asked ${asked.length} times`);
  });
});

describe("a worker that stops in the middle of a run", () => {
  /** The first item of a run of two has ended when the worker is told to stop. */
  async function stopInRun(stage: Stage, second: () => unknown): Promise<StopReport> {
    await stage.queue.submit("car0", "quick");
    const worker = stage.queue.work(({ id }) => (id === "b" ? second() : undefined));
    await stage.clock.pass(0);
    await stage.queue.pause();
    for (const id of ["a", "b"]) await stage.queue.submit("car1", id, { id });
    await stage.queue.resume();
    await stage.clock.pass(0);
    return await stopAndWait(stage, worker);
  }

  test("abandons what has ended, too, when the handler of the next ignores its signal and the store does not hear", async () => {
    const stage = setStage();
    stage.engine.onRenew = never;
    assert.deepEqual(await stopInRun(stage, never), { finished: 0, released: 0, abandoned: 2 });
  });

  test("counts what a renewal has told the store once", async () => {
    assert.deepEqual(await stopInRun(setStage(), never), { finished: 1, released: 0, abandoned: 1 });
  });

  test("counts all of it when the settlement gets no answer, when it is refused, and when it is heard", async () => {
    const unheard = setStage();
    const hold = (stage: Stage, answer: Promise<void>, result: "settled" | "lost"): void => {
      stage.engine.onSettle = async (settlements) => {
        if (settlements.some(({ lease }) => lease.key === "car1")) await answer;
        return settlements.map(() => result);
      };
    };
    hold(unheard, never(), "settled");
    assert.deepEqual(await stopInRun(unheard, () => undefined), { finished: 0, released: 0, abandoned: 2 });
    for (const result of ["settled", "lost"] as const) {
      const stage = setStage();
      const answer = new Promise<void>((resolve) => stage.clock.setTimer(100, resolve));
      hold(stage, answer, result);
      const counts = result === "lost" ? { finished: 0, abandoned: 2 } : { finished: 2, abandoned: 0 };
      const report = await stopInRun(stage, () => undefined);
      assert.deepEqual(report, { released: 0, ...counts });
    }
  });
});

test("a handler whose signal has fired is the last of its run", async (context) => {
  const stage = setStage();
  const begun: string[] = [];
  await stage.queue.submit("car0", "quick");
  const worker = stage.queue.work(
    ({ id }) => {
      begun.push(id);
      return id === "a" ? new Promise<void>((resolve) => stage.clock.setTimer(20, resolve)) : undefined;
    },
    { timeout: 10 },
  );
  context.after(() => worker.stop({ grace: 0 }));
  await stage.clock.pass(0);
  await stage.queue.pause();
  for (const id of ["a", "b"]) await stage.queue.submit("car1", id, { id });
  await stage.queue.resume();
  await stage.clock.pass(20);
  const [settlement] = stage.engine.settlements.at(1) ?? [];
  assert.deepEqual(
    [settlement?.ended, settlement?.ending.type],
    [[], "done"],
    "it ended well, and what is behind goes back",
  );
});
