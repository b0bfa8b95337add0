import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInput } from "./errors.ts";
import { backoffMs, parseRetry } from "./retry.ts";

describe("a retry policy", () => {
  test("has defaults", () => {
    assert.deepEqual(parseRetry(), { attempts: 5, backoffMs: 1_000, maxBackoffMs: 300_000, place: "keep" });
  });

  test("takes durations in any form", () => {
    const policy = parseRetry({ attempts: 1, backoff: "250ms", maxBackoff: 5_000, place: "yield" });
    assert.deepEqual(policy, { attempts: 1, backoffMs: 250, maxBackoffMs: 5_000, place: "yield" });
  });

  test("a bound that was left out gives way to the one that was given", () => {
    const hour = parseRetry({ backoff: "1h" });
    assert.deepEqual([hour.backoffMs, hour.maxBackoffMs], [3_600_000, 3_600_000]);
    const short = parseRetry({ maxBackoff: 200 });
    assert.deepEqual([short.backoffMs, short.maxBackoffMs], [200, 200]);
    const usual = parseRetry({ backoff: "10s" });
    assert.deepEqual([usual.backoffMs, usual.maxBackoffMs], [10_000, 300_000]);
  });

  test("says which bounds contradict one another", () =>
    assert.throws(() => parseRetry({ backoff: "1h", maxBackoff: "5m" }), {
      code: "INVALID_INPUT",
      message: /retry\.backoff: expected no more than retry\.maxBackoff, which is 5m; found "1h"/,
    }));

  const bad: readonly (readonly [string, object])[] = [
    ["attempts", { attempts: 0 }],
    ["attempts", { attempts: 1.5 }],
    ["attempts", { attempts: Number.NaN }],
    ["attempts", { attempts: "3" }],
    ["backoff", { backoff: "soon" }],
    ["maxBackoff", { maxBackoff: -1 }],
    ["place", { place: "back" }],
    ["backoff", { backoff: "1h", maxBackoff: "5m" }],
    ["delay", { delay: "soon" }],
    ["delay", { delay: "10s", backoff: "1s" }],
    ["delay", { delay: "10s", maxBackoff: "1m" }],
  ];
  for (const [field, options] of bad) {
    test(`names the field when ${JSON.stringify(options)} is refused`, () => {
      assert.throws(
        () => parseRetry(options),
        (error: unknown) => error instanceof InvalidInput && error.field === `retry.${field}`,
      );
    });
  }
});

describe("back-off", () => {
  const policy = parseRetry({ backoff: 100, maxBackoff: 1_000 });
  const most = (attempt: number): number => backoffMs(policy, attempt, () => 1);

  test("doubles its ceiling with each attempt, up to the longest", () => {
    assert.deepEqual([1, 2, 3, 4, 5, 6].map(most), [100, 200, 400, 800, 1_000, 1_000]);
  });

  test("is anything from zero to the ceiling", () => {
    assert.equal(
      backoffMs(policy, 4, () => 0),
      0,
    );
    assert.equal(
      backoffMs(policy, 4, () => 0.5),
      400,
    );
  });

  test("stays finite and whole after a thousand attempts", () => {
    assert.equal(most(1_000), 1_000);
    const endless = parseRetry({ backoff: 100, maxBackoff: "36525d" });
    assert.ok(Number.isFinite(backoffMs(endless, 1_000, () => 1)));
  });

  test("is left out for a fixed delay", () => {
    const fixed = parseRetry({ delay: "10s" });
    assert.deepEqual(
      [1, 2, 10].map((attempt) => backoffMs(fixed, attempt, () => 0.1)),
      [10_000, 10_000, 10_000],
    );
    assert.equal(
      backoffMs(parseRetry({ delay: 0 }), 1, () => 1),
      0,
    );
  });

  test("is none when none is asked for", () => {
    assert.equal(
      backoffMs(parseRetry({ backoff: 0 }), 10, () => 1),
      0,
    );
  });
});
