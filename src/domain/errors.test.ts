import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  BatonError,
  Cancelled,
  Closed,
  Fatal,
  HandlerTimeout,
  InvalidInput,
  KeyBusy,
  KeyFull,
  LeaseLost,
  LevelsDiffer,
  LockLost,
  OutcomeUnknown,
  QueueFull,
  RetryLater,
  SessionLost,
  show,
  Stopping,
} from "./errors.ts";

describe("errors", () => {
  const errors: readonly (readonly [BatonError, string])[] = [
    [new InvalidInput("key", "", "a key"), "INVALID_INPUT"],
    [new KeyBusy("cars", "car1"), "KEY_BUSY"],
    [new KeyFull("cars", "car1", 5), "KEY_FULL"],
    [new QueueFull("cars", 5), "QUEUE_FULL"],
    [new LevelsDiffer("cars", ["a"], ["b"]), "LEVELS_DIFFER"],
    [new LeaseLost("cars", "car1", 7, "time ran out"), "LEASE_LOST"],
    [new LockLost("nightly", 7, "time ran out"), "LOCK_LOST"],
    [new SessionLost("host:1", "time ran out"), "SESSION_LOST"],
    [new OutcomeUnknown("submit"), "OUTCOME_UNKNOWN"],
    [new Cancelled("order-17"), "CANCELLED"],
    [new Stopping(), "STOPPING"],
    [new HandlerTimeout(100), "HANDLER_TIMEOUT"],
    [new Closed(), "CLOSED"],
    [new Fatal("bad"), "FATAL"],
    [new RetryLater("1s"), "RETRY_LATER"],
  ];
  for (const [error, code] of errors) {
    test(`${code}: has a code, a name and a message`, () => {
      assert.ok(error instanceof BatonError);
      assert.equal(error.code, code);
      assert.equal(error.name, error.constructor.name);
      assert.ok(error.message.length > 2);
    });
  }

  test("keep their cause", () => {
    const cause = new Error("socket");
    assert.equal(new OutcomeUnknown("submit", { cause }).cause, cause);
    assert.equal(new Fatal("bad", { cause }).cause, cause);
  });

  test("say where in a larger input the bad value was", () => {
    const error = new InvalidInput("level", "urgent", "high, normal, low").at("[3]");
    assert.equal(error.field, "[3].level");
    assert.equal(error.value, "urgent");
    assert.match(error.message, /^\[3\]\.level: expected high, normal, low; found "urgent"/);
  });

  test("never let a user's text reach a terminal unescaped", () => {
    const hostile = "a\u001b[2Jb\nc\u009b31m\u2028d\u007f";
    for (const message of [new KeyBusy("q", hostile).message, new LeaseLost("q", hostile, 1, "why").message]) {
      // oxlint-disable-next-line no-control-regex -- These are what is looked for.
      assert.doesNotMatch(message, /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    }
  });
});

describe("a value in a message", () => {
  test("is short and on one line", () => {
    assert.equal(show("a\nb"), '"a\\nb"');
    assert.equal(show("x".repeat(200)).length, 80);
    assert.ok(show({ a: "x".repeat(200) }).endsWith("..."));
  });

  test("of every kind can be shown", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    assert.equal(show(undefined), "nothing");
    assert.equal(show(null), "null");
    assert.equal(show(10n), "10");
    assert.equal(show(Symbol("s")), "Symbol(s)");
    assert.equal(
      show(() => 1),
      "a function",
    );
    assert.equal(show(Number.NaN), "NaN");
    assert.equal(show(1.5), "1.5");
    assert.equal(show(circle), "a value that cannot be shown");
    assert.equal(show({ value: 10n }), "a value that cannot be shown");
  });
});
