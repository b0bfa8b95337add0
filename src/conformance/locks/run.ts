import { randomUUID } from "node:crypto";
import { playCase, runSuite, type SuiteOptions, type SuiteResult, type SuiteSummary } from "../suite.ts";
import type { LockCase } from "./case.ts";
import { lockCases } from "./cases.ts";
import { LockScene } from "./scene.ts";
import type { LocksTarget } from "./target.ts";

export type LocksConformanceResult = SuiteResult<LockCase>;
/** Sixteen cases run at a time, because most of them wait for a lease to run out; a case has a minute. */
export type LocksConformanceOptions = SuiteOptions<LockCase>;
export type LocksConformanceSummary = SuiteSummary<LockCase>;

const CASE_TIMEOUT_MS = 60_000;

/** Puts locks to the test. Prints nothing and throws nothing: what to do about a failure is the caller's business. */
export async function runLocksConformance(
  target: LocksTarget,
  options: LocksConformanceOptions = {},
): Promise<LocksConformanceSummary> {
  const run = (one: LockCase): Promise<LocksConformanceResult> => runLockCase(one, target, options.caseTimeoutMs);
  return await runSuite(target.name, lockCases, run, { concurrency: 16, ...options });
}

/** Runs one case alone, for a test framework that wants to do the counting. */
export async function runLockCase(
  one: LockCase,
  target: LocksTarget,
  timeoutMs: number = CASE_TIMEOUT_MS,
): Promise<LocksConformanceResult> {
  const reason = target.skip?.[one.name] ?? (await missing(one, target));
  if (reason !== undefined) return { case: one, status: "skipped", reason };
  return await playCase(one, (over) => new LockScene(target, `conformance-${randomUUID()}`, over), timeoutMs);
}

async function missing({ needs }: LockCase, target: LocksTarget): Promise<string | undefined> {
  for (const need of needs) {
    if (need === "fair") {
      const locks = await target.open();
      await locks.close();
      if (!locks.limits.fair)
        return "These locks do not promise to serve those who wait in the order in which they came.";
    } else if (typeof target[need] === "string") return target[need];
  }
  return undefined;
}
