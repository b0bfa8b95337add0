import { describe, test } from "node:test";
import { type LockCase, lockCases, type LocksTarget, runLockCase } from "../../src/conformance/index.ts";

/** The conformance suite of locks, with a test per case. */
export function addLockTests(title: string, target: LocksTarget, concurrency = 16): void {
  describe(`${title} conform`, { concurrency }, () => {
    for (const one of lockCases.filter(({ alone }) => !alone)) addTest(one, target);
  });
  describe(`${title} conform when they are alone`, { concurrency: 1 }, () => {
    for (const one of lockCases.filter(({ alone }) => alone)) addTest(one, target);
  });
}

function addTest(one: LockCase, target: LocksTarget): void {
  test(`${one.promise}: ${one.name}`, async (context) => {
    const result = await runLockCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
