import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { instant } from "../domain/clock.ts";
import { LeaseLost, Stopping } from "../domain/errors.ts";
import { encodePayload } from "../domain/payload.ts";
import { Run } from "./run.ts";

const LEASE = 3_000;
/** The lease without its margin of half a second. */
const USABLE = 2_500;

function newRun(clock: ManualClock, onProgress: (run: Run) => void = () => undefined): Run {
  const lease = { queue: "cars", key: "car1", fence: 7, since: instant(clock), handle: undefined };
  const payload = encodePayload(null);
  const item = {
    id: "a",
    queue: "cars",
    key: "car1",
    level: "normal",
    payload,
    headers: undefined,
    submittedAt: 0,
    attempt: 1,
  };
  return new Run({ lease, item }, LEASE, clock, onProgress);
}

describe("a run", () => {
  test("is certain until its lease, less the margin, has passed since before it was asked for", async () => {
    const clock = new ManualClock();
    const run = newRun(clock);
    assert.equal(run.leftMs, USABLE);
    await clock.pass(USABLE - 1);
    run.check();
    await clock.pass(1);
    assert.throws(() => run.check(), LeaseLost);
    assert.equal(run.leftMs, 0);
  });

  test("stays lost, also when the clock is set back or a renewal comes late", async () => {
    const clock = new ManualClock();
    const run = newRun(clock);
    clock.stepWall(60_000);
    assert.throws(() => run.check(), LeaseLost);
    clock.stepWall(-60_000);
    run.renewed(instant(clock));
    assert.throws(() => run.check(), LeaseLost);
    assert.equal(run.leftMs, 0);
  });

  test("is certain anew from when the renewal was sent, with a larger margin when that took long", async () => {
    const clock = new ManualClock();
    const run = newRun(clock);
    await clock.pass(1_000);
    const since = instant(clock);
    await clock.pass(300);
    run.renewed(since);
    assert.equal(run.leftMs, LEASE - 600 - 300);
  });

  test("is not shortened by a reply that was overtaken", async () => {
    const clock = new ManualClock();
    const run = newRun(clock);
    const old = instant(clock);
    await clock.pass(1_000);
    run.renewed(instant(clock));
    run.renewed(old);
    assert.equal(run.leftMs, USABLE);
  });

  test("makes its signal when it is asked for, also after it fired", () => {
    const clock = new ManualClock();
    const early = newRun(clock);
    const { signal } = early;
    assert.equal(signal.aborted, false);
    early.lose("somebody took it");
    assert.ok(signal.aborted && signal.reason instanceof LeaseLost);

    const late = newRun(clock);
    late.abort(new Stopping());
    assert.ok(late.signal.aborted && late.signal.reason instanceof Stopping);
    assert.equal(late.signal, late.signal);
  });

  test("tells the first reason, except that a lost lease is always told by check", () => {
    const run = newRun(new ManualClock());
    const stopping = new Stopping();
    run.abort(stopping);
    run.abort(new Error("later"));
    assert.throws(() => run.check(), stopping);
    run.lose("time ran out");
    assert.throws(() => run.check(), LeaseLost);
    // An AbortSignal cannot change its mind.
    assert.equal(run.signal.aborted, true);
  });

  test("takes progress from 0 to 1 and tells it on", () => {
    const told: (number | undefined)[] = [];
    const run = newRun(new ManualClock(), (changed) => told.push(changed.progressShare));
    for (const share of [0.4, -1, 2, Number.NaN, Number.POSITIVE_INFINITY]) run.progress(share);
    assert.deepEqual(told, [0.4, 0, 1]);
  });
});
