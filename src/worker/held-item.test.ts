import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { instant } from "../domain/clock.ts";
import { LeaseLost, Stopping } from "../domain/errors.ts";
import { encodePayload } from "../domain/payload.ts";
import { HeldItem } from "./held-item.ts";

const LEASE = 3_000;
/** The lease without its margin of half a second. */
const USABLE = 2_500;

function newRun(clock: ManualClock, onProgress: (held: HeldItem) => void = () => undefined): HeldItem {
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
  return new HeldItem({ lease, item }, LEASE, clock, onProgress);
}

describe("a run", () => {
  test("is certain until its lease, less the margin, has passed since before it was asked for", async () => {
    const clock = new ManualClock();
    const held = newRun(clock);
    assert.equal(held.leftMs, USABLE);
    await clock.pass(USABLE - 1);
    held.check();
    await clock.pass(1);
    assert.throws(() => held.check(), LeaseLost);
    assert.equal(held.leftMs, 0);
  });

  test("stays lost, also when the clock is set back or a renewal comes late", async () => {
    const clock = new ManualClock();
    const held = newRun(clock);
    clock.stepWall(60_000);
    assert.throws(() => held.check(), LeaseLost);
    clock.stepWall(-60_000);
    held.renewed(instant(clock));
    assert.throws(() => held.check(), LeaseLost);
    assert.equal(held.leftMs, 0);
  });

  test("is certain anew from when the renewal was sent, with a larger margin when that took long", async () => {
    const clock = new ManualClock();
    const held = newRun(clock);
    await clock.pass(1_000);
    const since = instant(clock);
    await clock.pass(300);
    held.renewed(since);
    assert.equal(held.leftMs, LEASE - 600 - 300);
  });

  test("is not shortened by a reply that was overtaken", async () => {
    const clock = new ManualClock();
    const held = newRun(clock);
    const old = instant(clock);
    await clock.pass(1_000);
    held.renewed(instant(clock));
    held.renewed(old);
    assert.equal(held.leftMs, USABLE);
  });

  test("makes its signal when it is asked for, also after it fired", () => {
    const clock = new ManualClock();
    const early = newRun(clock);
    const { signal } = early;
    assert.equal(signal.aborted, false, "the handler may go on");
    early.lose("somebody took it");
    assert.ok(signal.aborted && signal.reason instanceof LeaseLost);

    const late = newRun(clock);
    late.abort(new Stopping());
    assert.ok(late.signal.aborted && late.signal.reason instanceof Stopping);
    assert.equal(late.signal, late.signal);
  });

  test("tells the first reason, except that a lost lease is always told by check", () => {
    const held = newRun(new ManualClock());
    const stopping = new Stopping();
    held.abort(stopping);
    held.abort(new Error("later"));
    assert.throws(() => held.check(), stopping);
    held.lose("time ran out");
    assert.throws(() => held.check(), LeaseLost);
    // An AbortSignal cannot change its mind.
    assert.equal(held.signal.aborted, true, "the handler is told to stop");
  });

  test("takes progress from 0 to 1 and tells it on", () => {
    const told: (number | undefined)[] = [];
    const held = newRun(new ManualClock(), (changed) => told.push(changed.progressShare));
    for (const share of [0.4, 0, 1, 1 + Number.EPSILON]) held.progress(share);
    assert.deepEqual(told, [0.4, 0, 1, 1]);
    // 0 of 0 steps, percents, and what JavaScript would let through.
    for (const share of [Number.NaN, -0.1, 40, Infinity, "0.5", undefined])
      assert.throws(() => held.progress(share as number), { code: "INVALID_INPUT", field: "progress" });
    assert.equal(told.length, 4, "nothing is told of what was refused");
  });
});
