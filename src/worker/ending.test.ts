import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { instant } from "../domain/clock.ts";
import { Cancelled, Fatal, HandlerTimeout, RetryLater, Stopping } from "../domain/errors.ts";
import { encodePayload } from "../domain/payload.ts";
import { parseRetry } from "../domain/retry.ts";
import type { Ending } from "../engine/port.ts";
import { chooseEnding, endingOfExhausted, type EndingRules, type HandlerEnd } from "./ending.ts";
import { HeldItem } from "./held-item.ts";

const RULES: Omit<EndingRules, "attempt"> = {
  retry: parseRetry({ attempts: 3, backoff: 1_000, place: "yield" }),
  resultLimit: 20,
  stopping: false,
  random: () => 0.5,
};

function newRun(attempt = 1): HeldItem {
  const clock = new ManualClock();
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
    attempt,
  };
  return new HeldItem({ lease, item }, 3_000, clock, () => undefined);
}

function choose(end: HandlerEnd, held: HeldItem = newRun(), rules: Partial<EndingRules> = {}): Ending {
  return chooseEnding(held, end, { attempt: held.grant.item.attempt, ...RULES, ...rules });
}

describe("an item whose handler returned", () => {
  test("is done, with what was returned", () => {
    assert.deepEqual(choose({ returned: undefined }), { type: "done" });
    assert.deepEqual(choose({ returned: { a: 1 } }), { type: "done", result: encodePayload({ a: 1 }) });
    assert.deepEqual(choose({ returned: null }), { type: "done", result: encodePayload(null) });
    assert.deepEqual(choose({ returned: new Uint8Array(3) }), {
      type: "done",
      result: encodePayload(new Uint8Array(3)),
    });
  });

  test("is done without a result that is too large or cannot be carried, and says so", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const thrower = {
      toJSON: () => {
        throw new Error("not for you");
      },
    };
    const nothing = { toJSON: () => undefined };
    const cases: readonly (readonly [unknown, RegExp])[] = [
      ["x".repeat(30), /^it has 32 bytes, and limits\.payload of the queue is 20$/],
      [new Uint8Array(21), /^it has 21 bytes/],
      [10n, /^JSON cannot carry it: TypeError: Do not know how to serialize a BigInt$/],
      [circle, /^JSON cannot carry it: TypeError: Converting circular structure to JSON$/],
      [() => 1, /^JSON cannot carry it: it is a function$/],
      [Symbol("s"), /^JSON cannot carry it: it is a symbol$/],
      [thrower, /^JSON cannot carry it: Error: not for you$/],
      [nothing, /^JSON cannot carry it: nothing is left of it$/],
    ];
    for (const [returned, reason] of cases) {
      const ending = choose({ returned });
      assert.ok(ending.type === "done" && ending.result === undefined);
      assert.match(ending.resultMissing ?? "", reason);
    }
  });

  test("is done, also when it was cancelled, timed out or stopped meanwhile", () => {
    const held = newRun();
    held.cancelled = true;
    held.timedOut = true;
    held.abort(new Stopping());
    assert.deepEqual(choose({ returned: undefined }, held, { stopping: true }), { type: "done" });
  });
});

describe("an item whose handler threw", () => {
  test("is tried again, after a back-off of its own", () => {
    const ending = choose({ threw: new Error("no luck") }, newRun(2));
    assert.ok(ending.type === "retry");
    assert.equal(ending.delayMs, 1_000);
    assert.equal(ending.place, "yield");
    assert.equal(ending.failure.message, "no luck");
  });

  test("is tried again when the handler says", () => {
    const ending = choose({ threw: new RetryLater("7s") });
    assert.ok(ending.type === "retry");
    assert.equal(ending.delayMs, 7_000);
  });

  test("is told of a time that is none, for which the back-off stands in", () => {
    for (const [time, said] of [
      [Number.NaN, "NaN"],
      ["soon", '"soon"'],
    ] as const) {
      const ending = choose({ threw: new RetryLater(time) });
      assert.ok(ending.type === "retry" && ending.delayMs === 500);
      assert.match(
        ending.failure.message,
        new RegExp(`\\(its retryAfter, ${said}, is no length of time: the back-off counts\\)$`),
      );
    }
  });

  test("is dead after the last attempt, also when it asked for another", () => {
    assert.equal(choose({ threw: new Error("a") }, newRun(3)).type, "dead");
    assert.equal(choose({ threw: new RetryLater("7s") }, newRun(3)).type, "dead");
  });

  test("is dead at once when the error is fatal", () =>
    assert.equal(choose({ threw: new Fatal("bad data") }).type, "dead"));

  test("something that is not an error is tried again like any other", () => {
    for (const threw of [undefined, null, 0, "", {}]) assert.equal(choose({ threw }).type, "retry");
  });

  test("is cancelled when that was asked for, whatever it threw", () => {
    const held = newRun(3);
    held.cancelled = true;
    held.abort(new Cancelled("a"));
    for (const threw of [held.signal.reason, new Fatal("a"), undefined]) {
      assert.deepEqual(choose({ threw }, held, { stopping: true }), { type: "cancelled" });
    }
  });

  test("goes back without counting when its worker stops and told it so", () => {
    const held = newRun(3);
    held.abort(new Stopping());
    assert.deepEqual(choose({ threw: held.signal.reason }, held, { stopping: true }), { type: "release" });
  });

  test("counts when it failed by itself while its worker stops", () => {
    assert.equal(choose({ threw: new Error("a") }, newRun(), { stopping: true }).type, "retry");
  });

  test("counts when its time was up, and says so, also while its worker stops", () => {
    const held = newRun();
    held.timedOut = true;
    held.abort(new HandlerTimeout(100));
    for (const stopping of [false, true]) {
      const ending = choose({ threw: new Error("AbortError") }, held, { stopping });
      assert.ok(ending.type === "retry");
      assert.equal(ending.failure.code, "HANDLER_TIMEOUT");
    }
  });
});

test("an item that nobody was left to give up is dead, with a reason that says so", () => {
  const ending = endingOfExhausted(4, 3);
  assert.ok(ending.type === "dead");
  assert.equal(ending.failure.code, "ATTEMPTS_EXHAUSTED");
  assert.match(ending.failure.message, /all 3 attempts .* attempt 4/);
});
