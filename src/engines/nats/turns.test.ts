import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "./turns.ts";

test("one turn for three that went to the most urgent, as many as there is room for", () => {
  const turns = new Turns();
  for (let given = 0; given < 2; given += 1) turns.count();
  assert.equal(turns.take(10), 0);
  for (let given = 0; given < 11; given += 1) turns.count();
  assert.equal(turns.take(3), 3);
  assert.equal(turns.take(3), 1, "the rest is not forgotten");
  assert.equal(turns.take(3), 0);
});

test("what could not be taken for long does not keep all others waiting afterwards", () => {
  const turns = new Turns();
  for (let given = 0; given < 10_000; given += 1) turns.count();
  assert.equal(turns.take(1_000), 64);
  turns.count();
  turns.forget();
  for (let given = 0; given < 2; given += 1) turns.count();
  assert.equal(turns.take(1), 0);
});
