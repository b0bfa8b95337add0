import { randomUUID } from "node:crypto";
import type { ConformanceCase } from "./case.ts";
import { cases } from "./cases.ts";
import { Scene } from "./scene.ts";
import { playCase, runSuite, type SuiteOptions, type SuiteResult, type SuiteSummary } from "./suite.ts";
import type { ConformanceTarget } from "./target.ts";

export type ConformanceResult = SuiteResult<ConformanceCase>;
/** Eight cases run at a time; a case has 30 seconds. */
export type ConformanceOptions = SuiteOptions<ConformanceCase>;
export type ConformanceSummary = SuiteSummary<ConformanceCase>;

const CASE_TIMEOUT_MS = 30_000;

/** Puts a store to the test. Prints nothing and throws nothing: what to do about a failure is the caller's business. */
export async function runConformance(
  target: ConformanceTarget,
  options: ConformanceOptions = {},
): Promise<ConformanceSummary> {
  return await runSuite(target.name, cases, (one) => runCase(one, target, options.caseTimeoutMs), options);
}

/** Runs one case alone, for a test framework that wants to do the counting. */
export async function runCase(
  one: ConformanceCase,
  target: ConformanceTarget,
  timeoutMs: number = CASE_TIMEOUT_MS,
): Promise<ConformanceResult> {
  const reason =
    target.skip?.[one.name] ?? (one.needsRestart && typeof target.restart === "string" ? target.restart : undefined);
  if (reason !== undefined) return { case: one, status: "skipped", reason };
  return await playCase(one, (over) => new Scene(target, `conformance-${randomUUID()}`, over), timeoutMs);
}
