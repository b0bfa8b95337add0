import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Fatal, RetryLater } from "./errors.ts";
import { describeFailure, isFatal, retryAfterMs } from "./failure.ts";

describe("what a failure is described by", () => {
  test("an error: its message, its code and its stack", () => {
    const error = Object.assign(new Error("no connection"), { code: "ECONNREFUSED" });
    const failure = describeFailure(error);
    assert.equal(failure.message, "no connection");
    assert.equal(failure.code, "ECONNREFUSED");
    assert.match(failure.stack ?? "", /failure\.test/);
  });

  test("an error without a message: its name", () =>
    assert.equal(describeFailure(Object.assign(new TypeError("a"), { message: "" })).message, "TypeError"));

  test("a numeric code becomes text; any other code is left out", () => {
    assert.equal(describeFailure(Object.assign(new Error("a"), { code: 7 })).code, "7");
    assert.equal("code" in describeFailure(Object.assign(new Error("a"), { code: {} })), false);
  });

  test("what is not an error", () => {
    assert.equal(describeFailure("plain text").message, "plain text");
    assert.match(describeFailure(undefined).message, /threw undefined, which is not an Error/);
    assert.match(describeFailure(null).message, /threw null/);
    assert.match(describeFailure({ status: 500 }).message, /threw \{"status":500\}/);
  });

  test("what cannot even be shown", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    assert.match(describeFailure(circle).message, /not an Error/);
    assert.match(describeFailure(10n).message, /not an Error/);
  });

  test("is cut before it fills the store", () => {
    const error = new Error("x".repeat(10_000));
    error.stack = "y".repeat(100_000);
    const { message, stack } = describeFailure(error);
    assert.equal(message.length, 2_001);
    assert.equal(stack?.length, 4_001);
    assert.equal(describeFailure("z".repeat(10_000)).message.length, 2_001);
  });
});

describe("a failure says what is to be done", () => {
  test("fatal by class, by code, or by a field of any error", () => {
    assert.ok(isFatal(new Fatal("bad data")));
    assert.ok(isFatal(Object.assign(new Error("bad data"), { fatal: true })));
    for (const other of [
      new Error("a"),
      Object.assign(new Error("a"), { fatal: "yes" }),
      { fatal: true },
      "FATAL",
      undefined,
    ]) {
      assert.ok(!isFatal(other));
    }
  });

  test("when to try again, in any form of a duration; a bad one is no reason to fail twice", () => {
    assert.equal(retryAfterMs(new RetryLater("10s")), 10_000);
    assert.equal(retryAfterMs(Object.assign(new Error("a"), { retryAfter: 250 })), 250);
    for (const wish of ["soon", -1, Number.NaN, undefined, {}, null]) {
      assert.equal(retryAfterMs(Object.assign(new Error("a"), { retryAfter: wish })), undefined);
    }
    assert.equal(retryAfterMs({ retryAfter: 10 }), undefined);
  });
});
