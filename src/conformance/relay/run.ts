import { playCase, runSuite, type SuiteOptions, type SuiteResult, type SuiteSummary } from "../suite.ts";
import type { SourceCase } from "./case.ts";
import { sourceCases } from "./cases.ts";
import { SourceScene } from "./scene.ts";
import type { SourceTarget } from "./target.ts";

export type SourceConformanceResult = SuiteResult<SourceCase>;
/** Eight cases run at a time; a case has a minute. */
export type SourceConformanceOptions = SuiteOptions<SourceCase>;
export type SourceConformanceSummary = SuiteSummary<SourceCase>;

const CASE_TIMEOUT_MS = 60_000;

/**
 * Puts a source of the relay to the test. Prints nothing and throws nothing: what to do about a failure is the caller's
 * business.
 */
export async function runSourceConformance(
  target: SourceTarget,
  options: SourceConformanceOptions = {},
): Promise<SourceConformanceSummary> {
  const run = (one: SourceCase): Promise<SourceConformanceResult> => runSourceCase(one, target, options.caseTimeoutMs);
  return await runSuite(target.name, sourceCases, run, options);
}

/** Runs one case alone, for a test framework that wants to do the counting. */
export async function runSourceCase(
  one: SourceCase,
  target: SourceTarget,
  timeoutMs: number = CASE_TIMEOUT_MS,
): Promise<SourceConformanceResult> {
  const reason = target.skip?.[one.name] ?? one.needs.map((need) => target.cannot?.[need]).find(Boolean);
  if (reason !== undefined) return { case: one, status: "skipped", reason };
  return await playCase(one, (over) => new SourceScene(target, over), timeoutMs);
}
