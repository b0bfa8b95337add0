import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Duration, formatDuration, parseDuration } from "./duration.ts";
import { InvalidInput } from "./errors.ts";

describe("durations", () => {
  const good: readonly (readonly [Duration, number])[] = [
    [0, 0],
    [250, 250],
    [1.5, 2],
    ["0ms", 0],
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["1d", 86_400_000],
    ["1.5h", 5_400_000],
    ["0.5ms", 1],
    [" 10 s ", 10_000],
  ];
  for (const [value, expected] of good) {
    test(`${JSON.stringify(value)} is ${expected} ms`, () => assert.equal(parseDuration(value, "delay"), expected));
  }

  const bad: readonly unknown[] = [
    "",
    "10",
    "-1s",
    "1 week",
    "1s2m",
    "s",
    "1e3ms",
    ".5s",
    "1S",
    "١s",
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    undefined,
    null,
    true,
    [],
    {},
    10n,
  ];
  for (const value of bad) {
    test(`${typeof value === "bigint" ? `${value}n` : JSON.stringify(value)} (${typeof value}) is refused`, () => {
      assert.throws(
        () => parseDuration(value as Duration, "delay"),
        (error: unknown) =>
          error instanceof InvalidInput && error.field === "delay" && error.message.startsWith("delay: expected"),
      );
    });
  }

  test("are written as short as they can be without becoming wrong", () => {
    const written = [0, 1, 999, 1_000, 1_001, 90_000, 120_000, 3_600_000, 5_400_000, 86_400_000, 90_000_000];
    assert.deepEqual(written.map(formatDuration), [
      "0ms",
      "1ms",
      "999ms",
      "1s",
      "1001ms",
      "90s",
      "2m",
      "1h",
      "90m",
      "1d",
      "25h",
    ]);
  });

  test("are read back as they were written", () => {
    for (const ms of [0, 1, 59_999, 60_000, 61_000, 7_200_000, 86_400_000 * 3]) {
      assert.equal(parseDuration(formatDuration(ms), "delay"), ms);
    }
  });
});
