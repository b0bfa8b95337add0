import assert from "node:assert/strict";
import { test } from "node:test";
import { grantedRun } from "../../test/random/client/parts/granted-run.ts";
import { ManualClock } from "../../test/manual-clock.ts";
import { instant } from "../domain/clock.ts";
import type { HeldItem } from "./held-item.ts";
import { Prefetch } from "./prefetch.ts";

const clock = new ManualClock();

function heldItems(...keys: readonly string[]): readonly HeldItem[] {
  return keys.map((key) => grantedRun(key, instant(clock), 3_000, clock));
}

function keysOf(some: readonly (HeldItem | undefined)[]): readonly (string | undefined)[] {
  return some.map((held) => held?.key);
}

test("what came first begins first", () => {
  const prefetch = new Prefetch();
  prefetch.add(heldItems("a", "b"), 20);
  prefetch.add(heldItems("c"), 30);
  assert.equal(prefetch.size, 3);
  assert.deepEqual(keysOf([prefetch.take(), prefetch.take(), prefetch.take(), prefetch.take()]), [
    "a",
    "b",
    "c",
    undefined,
  ]);
  assert.equal(prefetch.size, 0);
});

test("what was kept until its time goes back then, and what came later stays until its own", () => {
  const prefetch = new Prefetch();
  assert.equal(prefetch.staleAt, Infinity);
  prefetch.add(heldItems("a", "b"), 20);
  prefetch.add(heldItems("c"), 30);
  assert.equal(prefetch.staleAt, 20);
  assert.deepEqual(keysOf(prefetch.takeStale(19)), []);
  assert.deepEqual(keysOf(prefetch.takeStale(20)), ["a", "b"]);
  assert.equal(prefetch.staleAt, 30);
  assert.deepEqual(keysOf(prefetch.takeStale(29)), []);
  assert.deepEqual(keysOf(prefetch.takeStale(31)), ["c"]);
  assert.equal(prefetch.size, 0);
});

test("all of it goes back at once, and what comes afterwards is kept", () => {
  const prefetch = new Prefetch();
  prefetch.add(heldItems("a", "b"), 20);
  assert.deepEqual(keysOf(prefetch.takeAll()), ["a", "b"]);
  assert.deepEqual(keysOf(prefetch.takeAll()), []);
  prefetch.add(heldItems("c"), 40);
  assert.deepEqual(keysOf([prefetch.take()]), ["c"]);
});
