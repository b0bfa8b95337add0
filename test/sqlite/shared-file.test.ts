import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { connect, type BatonEvent } from "../../src/index.ts";
import { Lateness } from "../kit/lateness.ts";
import { type Child, Desk, now } from "./desk.ts";

const PROCESSES = 8;

test("eight processes may make the same new file at the same time", async (context) => {
  const desk = new Desk(context);
  const children = Array.from({ length: PROCESSES }, (_, index) => desk.start("open-and-submit", `car${index}`));
  await Promise.all(children.map((child) => child.next()));
  for (let round = 0; round < 3; round += 1) {
    const url = `${desk.url}${round}`;
    for (const child of children) child.send(url);
    const answers = await Promise.all(children.map((child) => child.next<string>()));
    assert.deepEqual([...new Set(answers)], ["accepted"]);
    await using baton = await connect(url);
    assert.equal((await baton.queue("cars").status()).waiting, PROCESSES);
  }
});

test("calls wait for a process that holds the file for long, the application goes on, and leases survive", async (context) => {
  const desk = new Desk(context);
  const events: BatonEvent[] = [];
  const baton = await desk.connect({ onEvent: (event) => events.push(event) });
  // Its first renewal falls into the time for which the file is held.
  const cars = baton.queue("cars", { lease: "6s" });
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const receipt = await cars.submit("car1", null, { id: "long" });
  cars.work(async () => {
    started.resolve();
    await finish.promise;
  });
  await started.promise;

  const holdMs = 2_500;
  const lock = desk.start("lock", desk.file, String(holdMs));
  await lock.next();
  const began = now();
  const drift = measureDrift();
  await Promise.all([cars.submit("car2", null), cars.submit("car3", null)]);
  const waited = now() - began;
  const late = drift.stop();
  finish.resolve();

  assert.ok(waited > holdMs * 0.8, `The submissions waited ${waited.toFixed(0)} ms, so the file was not held.`);
  // A machine that is busy makes timers late, too, but not by as long as the file was held.
  assert.ok(late < holdMs / 2, `A timer was ${late.toFixed(0)} ms late: the event loop was blocked.`);
  assert.equal((await receipt.outcome({ timeout: "30s" })).attempt, 1);
  assert.deepEqual(
    events.filter(({ type }) => type === "lost"),
    [],
  );
  context.diagnostic(`a timer was at most ${late.toFixed(1)} ms late while calls waited ${waited.toFixed(0)} ms`);
});

test("an idle worker of one process starts what another one submits, at once", async (context) => {
  const desk = new Desk(context);
  const cars = (await desk.connect()).queue<string>("cars");
  const worker = await startWorker(desk);
  using lateness = new Lateness();
  const tookMs: number[] = [];
  for (let round = 0; round < 40; round += 1) {
    const from = now();
    const receipt = await cars.submit("car1", "again", { history: "1m" });
    const { at } = await worker.next<{ readonly at: number }>();
    tookMs.push(at - from);
    // Idle again: what is found while still awake shows nothing.
    await receipt.outcome({ timeout: "30s" });
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  const [median = 0, longest = 0] = [sorted[sorted.length / 2], sorted.at(-1)];
  context.diagnostic(
    `from the submission to the start elsewhere: median ${median.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`,
  );
  lateness.assertWithin(longest, 500, "the latest start of an item elsewhere");
});

test("who submitted hears how it ended in another process", async (context) => {
  const desk = new Desk(context);
  const cars = (await desk.connect()).queue<string>("cars");
  const receipt = await cars.submit("car1", "ab", { id: "one" });
  const outcome = receipt.outcome({ timeout: "20s" });
  await startWorker(desk);
  const { state, result, attempt } = await outcome;
  assert.deepEqual({ state, result, attempt }, { state: "done", result: "abab", attempt: 1 });
});

test("without the file that wakes, work is found a little later", async (context) => {
  const desk = new Desk(context);
  const early = (await desk.connect()).queue<string>("cars");
  const worker = await startWorker(desk);
  rmSync(`${desk.file}-wake`);
  using lateness = new Lateness();
  // One who comes now makes a new file, which the worker does not watch.
  const late = (await desk.connect()).queue<string>("cars");
  for (const cars of [late, early, late]) {
    const from = now();
    await cars.submit("car1", "x");
    const { at } = await worker.next<{ readonly at: number }>();
    lateness.assertWithin(at - from, 3_000, "a start that nobody told of");
    const receipt = await cars.submit("car2", "y", { history: "1m" });
    await worker.next();
    assert.equal((await receipt.outcome({ timeout: "30s" })).state, "done");
  }
});

async function startWorker(desk: Desk): Promise<Child> {
  const worker = desk.start("work", desk.url);
  await worker.next();
  return worker;
}

/** How late a timer of this event loop was at most. */
function measureDrift(): { stop(): number } {
  const everyMs = 10;
  let last = now();
  let late = 0;
  const timer = setInterval(() => {
    late = Math.max(late, now() - last - everyMs);
    last = now();
  }, everyMs);
  return {
    stop() {
      clearInterval(timer);
      return late;
    },
  };
}
