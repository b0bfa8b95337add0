import assert from "node:assert/strict";
import { test } from "node:test";
import { Lateness, playInTime } from "./lateness.ts";

const BLOCK_MS = 50;

test("a limit grows with the lateness of timers, and with nothing else", () => {
  using lateness = new Lateness();
  const before = lateness.addedMs;
  assert.throws(
    () => lateness.assertWithin(before + 20_000, 500, "the start"),
    /^AssertionError.*: the start took \d+ ms/,
  );
  const from = performance.now();
  while (performance.now() - from < BLOCK_MS);
  assert.ok(lateness.ms >= BLOCK_MS - 15, "what kept timers waiting is noticed");
  lateness.assertWithin(before + 600, 500, "the start");
});

test("what fails is played again only where timers were late", async () => {
  let plays = 0;
  const failure = new Error("It took too long.");
  const failing = playInTime(60_000, () => {
    plays += 1;
    return Promise.reject(failure);
  });
  await assert.rejects(failing, failure);
  assert.equal(plays, 1);
  await playInTime(BLOCK_MS / 5, () => {
    plays += 1;
    if (plays > 2) return Promise.resolve();
    const from = performance.now();
    while (performance.now() - from < BLOCK_MS);
    return Promise.reject(failure);
  });
  assert.equal(plays, 3);
});
