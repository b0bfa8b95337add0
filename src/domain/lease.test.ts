import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { elapsedMs, instant, systemClock } from "./clock.ts";
import { leaseLeftMs, leaseMarginMs, renewAfterMs } from "./lease.ts";

describe("the margin of a lease", () => {
  test("is half a second, or a tenth of a long lease", () => {
    assert.equal(leaseMarginMs(2_000), 500);
    assert.equal(leaseMarginMs(5_000), 500);
    assert.equal(leaseMarginMs(30_000), 3_000);
  });

  test("is twice the way to the store when that is slow", () => {
    assert.equal(leaseMarginMs(30_000, 1_000), 3_000);
    assert.equal(leaseMarginMs(30_000, 2_000), 4_000);
  });

  test("never takes more than a quarter", () => {
    assert.equal(leaseMarginMs(100), 25);
    assert.equal(leaseMarginMs(1_000), 250);
    assert.equal(leaseMarginMs(30_000, 60_000), 7_500);
  });

  test("leaves room for a renewal that fails and one that is late", () => {
    for (const leaseMs of [100, 400, 2_000, 30_000, 86_400_000]) {
      assert.ok(2 * renewAfterMs(leaseMs) < leaseMs - leaseMarginMs(leaseMs));
    }
  });
});

describe("what is left of a lease", () => {
  const LEASE = 10_000;
  const MARGIN = 1_000;

  test("shrinks with time, also below zero", async () => {
    const clock = new ManualClock();
    const since = instant(clock);
    assert.equal(leaseLeftMs(clock, since, LEASE, MARGIN), 9_000);
    await clock.pass(8_999);
    assert.equal(leaseLeftMs(clock, since, LEASE, MARGIN), 1);
    await clock.pass(1_001);
    assert.equal(leaseLeftMs(clock, since, LEASE, MARGIN), -1_000);
  });

  test("goes by the wall clock when that says more: a machine that slept counts no monotonic time", async () => {
    const clock = new ManualClock();
    const since = instant(clock);
    await clock.pass(1_000);
    clock.stepWall(30_000);
    assert.equal(elapsedMs(clock, since), 31_000);
    assert.equal(leaseLeftMs(clock, since, LEASE, MARGIN), -22_000);
  });

  test("is not lengthened by a wall clock that is set back", async () => {
    const clock = new ManualClock();
    const since = instant(clock);
    await clock.pass(9_000);
    clock.stepWall(-30_000);
    assert.equal(elapsedMs(clock, since), 9_000);
    assert.equal(leaseLeftMs(clock, since, LEASE, MARGIN), 0);
  });
});

describe("the system's clock", () => {
  test("has a monotonic side that never goes back", () => {
    const first = systemClock.monotonic();
    assert.ok(systemClock.monotonic() >= first);
  });

  test("calls back once, and not when cancelled", async () => {
    const called: string[] = [];
    systemClock.setTimer(0, () => called.push("cancelled")).cancel();
    await new Promise<void>((resolve) => {
      systemClock.setTimer(-5, () => called.push("late"));
      // Its timers do not keep the process alive; this one does.
      setTimeout(resolve, 20);
    });
    assert.deepEqual(called, ["late"]);
  });

  test("does not fire a timer at once because it is too far ahead", () => {
    const timer = systemClock.setTimer(2 ** 40, () => assert.fail("fired"));
    timer.cancel();
  });
});
