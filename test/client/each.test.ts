/** Several servers walk one list. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { LockLost } from "../../src/index.ts";
import { aftermath } from "../manual-clock.ts";
import { never } from "../scripted-engine.ts";
import { type Connected, LEASE_MS, LockStage, untilAborted } from "./lock-stage.ts";

const LEASE = { lease: LEASE_MS };
const TASKS = ["a", "b", "c", "d"];

let stage: LockStage;
let ada: Connected;
let bob: Connected;

beforeEach(() => {
  stage = new LockStage();
  ada = stage.connect();
  bob = stage.connect();
});

afterEach(async () => {
  await Promise.all([ada.baton.close({ grace: 0 }), bob.baton.close({ grace: 0 })]);
});

describe("each", () => {
  test("each task is run by one of the servers; the others skip it", async () => {
    const ran: string[] = [];
    const gate = Promise.withResolvers<void>();
    const work = async (task: string): Promise<void> => {
      ran.push(task);
      await gate.promise;
    };
    const first = ada.baton.each(TASKS, work, { ...LEASE, concurrency: 2 });
    await aftermath();
    const second = bob.baton.each(TASKS, work, { ...LEASE, concurrency: 2 });
    await aftermath();
    assert.deepEqual(ran, TASKS);
    gate.resolve();
    const reports = await Promise.all([first, second]);
    assert.deepEqual(
      reports.map(({ done }) => done),
      [
        ["a", "b"],
        ["c", "d"],
      ],
    );
    assert.deepEqual(reports[1].skipped, [
      { task: "a", why: "held" },
      { task: "b", why: "held" },
    ]);
    assert.deepEqual(reports[0].skipped, [
      { task: "c", why: "retired" },
      { task: "d", why: "retired" },
    ]);
  });

  test("what is done is remembered for a time; what failed is not", async () => {
    const options = { ...LEASE, remember: "1m" };
    const fails = async (task: string): Promise<void> => {
      await aftermath();
      if (task === "b") throw new Error("no");
    };
    const first = await ada.baton.each(TASKS, fails, options);
    assert.deepEqual(first.done, ["a", "c", "d"]);
    assert.deepEqual(
      first.failed.map(({ task, error }) => [task, String(error)]),
      [["b", "Error: no"]],
    );
    const late = await bob.baton.each(TASKS, () => undefined, options);
    assert.deepEqual(
      { done: late.done, skipped: late.skipped.map(({ why }) => why) },
      { done: ["b"], skipped: ["retired", "retired", "retired"] },
    );
    await stage.clock.pass(61_000);
    assert.deepEqual((await bob.baton.each(TASKS, () => undefined, options)).done, TASKS);
    const forgetful = { ...LEASE, remember: 0, key: (task: string) => `again/${task}` };
    await ada.baton.each(TASKS, () => undefined, forgetful);
    assert.deepEqual((await ada.baton.each(TASKS, () => undefined, forgetful)).done, TASKS);
  });

  test("a task whose lock is lost has failed, and is anybody's", async () => {
    const running = ada.baton.each(["a"], (_, lock) => untilAborted(lock.signal), LEASE);
    await aftermath();
    ada.locks.onRenew = never;
    await stage.clock.pass(LEASE_MS);
    const { done, failed } = await running;
    assert.deepEqual(done, []);
    assert.ok(failed[0]?.error instanceof LockLost);
    assert.deepEqual((await bob.baton.each(["a"], () => undefined, LEASE)).done, ["a"]);
  });

  test("a signal takes no further task, and is passed on to those that run", async () => {
    const stop = new AbortController();
    const running = ada.baton.each(TASKS, (_, lock) => untilAborted(lock.signal), { ...LEASE, signal: stop.signal });
    await aftermath();
    stop.abort(new Error("enough"));
    const { done, skipped, failed } = await running;
    assert.deepEqual(
      { done, skipped, failed: failed.map(({ error }) => String(error)) },
      { done: [], skipped: [], failed: ["Error: enough"] },
    );
  });

  test("walks what comes over time, and wants a name for what is no text", async () => {
    async function* pages(): AsyncGenerator<{ readonly id: number }> {
      for (const id of [1, 2]) {
        await aftermath();
        yield { id };
      }
    }
    const { done } = await ada.baton.each(pages(), () => undefined, { ...LEASE, key: ({ id }) => `page/${id}` });
    assert.deepEqual(done, [{ id: 1 }, { id: 2 }]);
    await assert.rejects(
      ada.baton.each([{ id: 3 }], () => undefined),
      /a function that names a task/,
    );
    await assert.rejects(
      ada.baton.each(["a"], () => undefined, { remember: "400d" }),
      /at most 366d/,
    );
  });
});
