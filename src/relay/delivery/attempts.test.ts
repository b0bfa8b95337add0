/** Counts of attempts that a source and this process make together. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedMessage, ScriptedSource } from "../../../test/relay/core/scripted-source.ts";
import { Attempts } from "./attempts.ts";

function received(times: number | undefined): ScriptedMessage {
  return new ScriptedMessage(new ScriptedSource("orders"), "m1", { attempt: times });
}

test("receipts before a delivery that failed, and went back untried, are no attempts afterwards either", () => {
  const attempts = new Attempts();
  // Its key was busy twenty times.
  for (let times = 1; times <= 20; times += 1) attempts.note(received(times), attempts.of(received(times)), false);
  assert.equal(attempts.of(received(21)), 1);
  attempts.note(received(21), 1, true);
  assert.equal(attempts.of(received(22)), 2);
  attempts.note(received(22), 2, false);
  assert.equal(attempts.of(received(23)), 2);
});

test("receipts that another relay had are counted, as nobody here knows what became of them", () => {
  const attempts = new Attempts();
  attempts.note(received(1), 1, false);
  attempts.note(received(2), 1, true);
  assert.equal(attempts.of(received(5)), 4);
});

test("a source that does not count leaves it to this process", () => {
  const attempts = new Attempts();
  attempts.note(received(undefined), 1, false);
  assert.equal(attempts.of(received(undefined)), 1);
  attempts.note(received(undefined), 1, true);
  assert.equal(attempts.of(received(undefined)), 2);
});

test("a message whose queue counts anew begins anew", () => {
  const attempts = new Attempts();
  attempts.note(received(3), 2, true);
  assert.equal(attempts.of(received(1)), 1);
});
