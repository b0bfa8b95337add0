import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Settlement, Submission } from "../../engine/port.ts";
import { Lane, type LaneWork, type SettleCall, type SubmitCall } from "./lane.ts";

const settlement: Settlement = {
  lease: { queue: "q", key: "k", fence: 1, since: { wall: 0, monotonic: 0 }, handle: 1 },
  ending: { type: "done" },
};

const submission: Submission = {
  queue: "q",
  key: "k",
  level: "normal",
  payload: { type: "text/plain", body: "x" },
  delayMs: 0,
  mode: "fifo",
  keyLimit: Infinity,
  queueLimit: Infinity,
  keepMs: 0,
};

/** Worth a step beside another. */
const MANY = 50;

/** Notes what begins, and lets it end when it is told to. */
class Watched implements LaneWork {
  readonly begun: string[] = [];
  /** How many each call had, by statement. */
  readonly submitted: (readonly number[])[] = [];
  readonly #open = new Map<string, () => void>();
  mayStepBeside = true;
  hasWaiting = false;
  rests = 0;

  async submit(calls: readonly SubmitCall[]): Promise<void> {
    this.submitted.push(calls.map(({ input }) => input.length));
    await this.#run("submit");
    for (const { resolve } of calls) resolve([]);
  }

  async step(calls: readonly SettleCall[]): Promise<void> {
    this.hasWaiting = false;
    await this.#run("step", calls);
  }

  stepBeside(leases: number, take: () => readonly SettleCall[]): Promise<void> | undefined {
    return this.mayStepBeside && leases >= MANY ? this.#run("beside", take()) : undefined;
  }

  async rest(): Promise<void> {
    await Promise.resolve();
    this.rests += 1;
  }

  async end(name: string): Promise<void> {
    this.#open.get(name)?.();
    await turn();
    await turn();
  }

  async #run(name: string, calls: readonly SettleCall[] = []): Promise<void> {
    const size = calls.reduce((sum, { input }) => sum + input.length, 0);
    this.begun.push(size === 0 ? name : `${name} ${size}`);
    await new Promise<void>((resolve) => this.#open.set(name, resolve));
    for (const { resolve } of calls) resolve([]);
  }
}

interface Stage {
  readonly work: Watched;
  readonly lane: Lane;
  readonly settle: (count: number) => Promise<void>;
}

function stage(): Stage {
  const work = new Watched();
  const lane = new Lane(work);
  const settle = async (count: number): Promise<void> => {
    void lane.settle(Array.from({ length: count }, () => settlement));
    await turn();
    await turn();
  };
  return { work, lane, settle };
}

test("many that end while a step is under way get a step beside it; few wait for the next", async () => {
  const { work, settle } = stage();
  await settle(10);
  await settle(10);
  assert.deepEqual(work.begun, ["step 10"]);
  await settle(60);
  assert.deepEqual(work.begun, ["step 10", "beside 70"]);
  await settle(100);
  assert.deepEqual(work.begun, ["step 10", "beside 70"], "two at a time");
  await work.end("step");
  assert.deepEqual(work.begun, ["step 10", "beside 70", "step 100"]);
  await work.end("beside");
  await work.end("step");
  assert.equal(work.rests, 1);
});

test("without a second connection everything waits for its turn", async () => {
  const { work, settle } = stage();
  work.mayStepBeside = false;
  await settle(10);
  await settle(100);
  assert.deepEqual(work.begun, ["step 10"]);
});

test("what is asked for after leases have ended waits until they have", async () => {
  const { work, lane, settle } = stage();
  await settle(10);
  await settle(60);
  void lane.submit([]);
  await settle(60);
  await work.end("step");
  assert.deepEqual(work.begun, ["step 10", "beside 60"], "one of the two is still under way");
  await work.end("beside");
  assert.deepEqual(work.begun, ["step 10", "beside 60", "submit"]);
  await work.end("submit");
  assert.deepEqual(work.begun, ["step 10", "beside 60", "submit", "step 60"]);
});

test("whoever waits is served between two submissions", async () => {
  const { work, lane } = stage();
  void lane.submit([]);
  await turn();
  void lane.call(() => Promise.resolve());
  void lane.submit([]);
  work.hasWaiting = true;
  await work.end("submit");
  assert.deepEqual(work.begun, ["submit", "step"]);
  await work.end("step");
  assert.deepEqual(work.begun, ["submit", "step", "submit"]);
});

test("quiet is when nothing is under way any more", async () => {
  const { work, lane, settle } = stage();
  await lane.quiet();
  await settle(10);
  await settle(60);
  let isQuiet = false;
  void lane.quiet().then(() => (isQuiet = true));
  await work.end("step");
  assert.equal(isQuiet, false, "the lane has still something to do");
  await work.end("beside");
  assert.equal(isQuiet, true, "the lane has come to rest");
});

test("submissions share a statement up to a thousand and four megabytes, and a call is not divided", async () => {
  const { work, lane } = stage();
  const submit = (count: number, size: number): void => {
    const payload = { type: "text/plain", body: "x".repeat(size) };
    void lane.submit(Array.from({ length: count }, () => ({ ...submission, payload })));
  };
  const rounds = async (count: number): Promise<readonly (readonly number[])[]> => {
    for (let round = 0; round < count; round += 1) {
      await turn();
      await turn();
      await work.end("submit");
    }
    return work.submitted.splice(0);
  };
  const mebibyte = 1024 * 1024;
  for (let call = 0; call < 9; call += 1) submit(1, mebibyte);
  assert.deepEqual(await rounds(3), [[1, 1, 1, 1], [1, 1, 1, 1], [1]]);
  submit(1, 10);
  submit(9, mebibyte);
  submit(1, 10);
  assert.deepEqual(await rounds(3), [[1], [9], [1]]);
  submit(600, 1);
  submit(600, 1);
  submit(600, 1);
  assert.deepEqual(await rounds(2), [[600, 600], [600]]);
});
