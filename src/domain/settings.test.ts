import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInput } from "./errors.ts";
import { parseLease, parseQueueOptions } from "./settings.ts";

describe("the settings of a queue", () => {
  test("have defaults that DESIGN names", () => {
    const settings = parseQueueOptions();
    assert.equal(settings.mode, "fifo");
    assert.equal(settings.levels, undefined);
    assert.equal(settings.leaseMs, 30_000);
    assert.equal(settings.payloadLimit, 262_144);
    assert.equal(settings.rememberMs, 86_400_000);
    assert.equal(settings.historyMs, 0);
    assert.equal(settings.retry.attempts, 5);
  });

  test("are taken over", () => {
    const settings = parseQueueOptions({
      mode: "latest",
      levels: ["a", "b"],
      lease: "2s",
      limits: { perKey: 1, perQueue: 2, payload: 3 },
      patience: 0,
      remember: "2d",
      history: "1h",
    });
    assert.deepEqual(settings, {
      mode: "latest",
      levels: ["a", "b"],
      leaseMs: 2_000,
      retry: settings.retry,
      keyLimit: 1,
      queueLimit: 2,
      payloadLimit: 3,
      patienceMs: 0,
      rememberMs: 172_800_000,
      historyMs: 3_600_000,
    });
  });

  const bad: readonly (readonly [string, object])[] = [
    ["mode", { mode: "lifo" }],
    ["lease", { lease: "99ms" }],
    ["lease", { lease: "25h" }],
    ["levels", { levels: [] }],
    ["limits.perKey", { limits: { perKey: 0 } }],
    ["limits.perQueue", { limits: { perQueue: 1.5 } }],
    ["limits.payload", { limits: { payload: -1 } }],
    ["patience", { patience: "long" }],
    ["remember", { remember: -1 }],
    ["history", { history: "for ever" }],
    ["retry.attempts", { retry: { attempts: 0 } }],
  ];
  for (const [field, options] of bad) {
    test(`name the field when ${JSON.stringify(options)} is refused`, () => {
      assert.throws(
        () => parseQueueOptions(options),
        (error: unknown) => error instanceof InvalidInput && error.field === field,
      );
    });
  }

  test("allow leases from a tenth of a second to a day", () => {
    assert.deepEqual(
      ["100ms", "1d"].map((lease) => parseLease(lease)),
      [100, 86_400_000],
    );
  });
});
