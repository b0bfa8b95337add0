import assert from "node:assert/strict";
import { test } from "node:test";
import { Pulse } from "./pulse.ts";

/** Longer than a sign of life counts. */
const STALE_MS = 30;

/** Holds this thread up, as a busy machine does. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("an application that has just shown life is not asked", () => {
  const application = new Pulse();
  const store = new Pulse(application.shared);
  application.beat();
  assert.equal(
    store.isAlive(() => assert.fail("It was asked.")),
    true,
  );
});

test("one that does not answer is asked once, and told to make the store look when it does", () => {
  const application = new Pulse();
  const store = new Pulse(application.shared);
  application.beat();
  standStill(STALE_MS);
  let asked = 0;
  const ask = (): void => void (asked += 1);
  assert.deepEqual([store.isAlive(ask), store.isAlive(ask), asked], [false, false, 1]);
  assert.equal(application.answer(), true, "the question is open, and answered");
  assert.equal(store.isAlive(ask), true, "an application that answers lives");
  standStill(STALE_MS);
  assert.deepEqual([store.isAlive(ask), asked], [false, 2]);
});

test("an answer that the store's thread sees late is an answer: it does not wait for it for ever", () => {
  const application = new Pulse();
  const store = new Pulse(application.shared);
  application.beat();
  standStill(STALE_MS);
  const answerAndHoldUp = (): void => {
    assert.equal(application.answer(), false, "there is no question to be answered");
    standStill(STALE_MS);
  };
  assert.equal(store.isAlive(answerAndHoldUp), true, "an application that answered in time lives");
  standStill(STALE_MS);
  assert.equal(store.isAlive(answerAndHoldUp), true, "and it is asked again when it is silent again");
});
