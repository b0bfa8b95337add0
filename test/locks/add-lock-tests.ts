import { describe, test } from "node:test";
import { type LockCase, lockCases, type LocksTarget, runLockCase } from "../../src/conformance/index.ts";

export interface LockTestOptions {
  /** Cases at a time. */
  readonly concurrency?: number;
  /** For stores that take longer than the suite expects. */
  readonly timeoutMs?: number;
}

/** The conformance suite of locks, with a test per case. */
export function addLockTests(title: string, target: LocksTarget, options: LockTestOptions = {}): void {
  const { concurrency = 16, timeoutMs } = options;
  describe(`${title} conform`, { concurrency }, () => {
    for (const one of lockCases.filter(({ alone }) => !alone)) addTest(one, target, timeoutMs);
  });
  describe(`${title} conform when they are alone`, { concurrency: 1 }, () => {
    for (const one of lockCases.filter(({ alone }) => alone)) addTest(one, target, timeoutMs);
  });
}

function addTest(one: LockCase, target: LocksTarget, timeoutMs?: number): void {
  test(`${one.promise}: ${one.name}`, async (context) => {
    const result = await runLockCase(one, target, timeoutMs);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
