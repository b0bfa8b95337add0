import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BatonError } from "../../domain/errors.ts";
import { fenceOf, firstSequence, isNearlyOut, LAST_SEQUENCE } from "./fence-room.ts";
import { FENCES_PER_MESSAGE } from "./state.ts";

const year = (number: number): number => Date.UTC(number, 6);

function assertFull(work: () => unknown): void {
  assert.throws(work, (error) => error instanceof BatonError && error.code === "STORE_FULL");
}

describe("the first sequence of a stream that is made anew", () => {
  test("leaves fences exact for decades, and lets them rise", () => {
    let before = 0;
    for (const now of [2026, 2027, 2039, 2040, 2060, 2074].map(year)) {
      const first = firstSequence(now, 0, 0);
      assert.ok(first > before);
      assert.ok(Number.isSafeInteger(fenceOf(first) + FENCES_PER_MESSAGE));
      before = first;
    }
  });

  test("is beyond all that this process has written, whatever the clock says", () => {
    assert.equal(firstSequence(0, 1_000, 0), 1_001);
    assert.equal(firstSequence(year(2027), 2 ** 44, 0), 2 ** 44 + 1);
  });

  test("does not fall in a store that was begun when they were counted from 1970", () => {
    const old = year(2026) * 64;
    assert.ok(firstSequence(year(2027), 0, old) > old);
    assert.equal(firstSequence(year(2027), 0, old), year(2027) * 64);
  });

  test("is refused before fences would be inexact", () => {
    assertFull(() => firstSequence(year(2097), 0, 0));
    assertFull(() => firstSequence(year(2040), 0, year(2026) * 64));
    assertFull(() => firstSequence(year(2027), LAST_SEQUENCE, 0));
  });
});

test("a fence that would not be exact is not given", () => {
  assert.ok(Number.isSafeInteger(fenceOf(LAST_SEQUENCE) + FENCES_PER_MESSAGE));
  assertFull(() => fenceOf(LAST_SEQUENCE + 1));
  assert.equal(isNearlyOut(LAST_SEQUENCE), true, "the last sequence leaves no room");
  assert.equal(isNearlyOut(year(2027)), false, "there is room for decades");
});
