import { randomUUID } from "node:crypto";
import { playCase, runSuite, type SuiteOptions, type SuiteResult, type SuiteSummary } from "../suite.ts";
import type { WakeCase } from "./case.ts";
import { wakeCases } from "./cases.ts";
import { WakeScene } from "./scene.ts";
import type { WakeTarget } from "./target.ts";

export type WakeConformanceResult = SuiteResult<WakeCase>;
/** Eight cases run at a time; a case has a minute. */
export type WakeConformanceOptions = SuiteOptions<WakeCase>;
export type WakeConformanceSummary = SuiteSummary<WakeCase>;

const CASE_TIMEOUT_MS = 60_000;

/** Puts a carrier of wakes to the test. Prints nothing and throws nothing: what to do about a failure is the caller's business. */
export async function runWakeConformance(
  target: WakeTarget,
  options: WakeConformanceOptions = {},
): Promise<WakeConformanceSummary> {
  return await runSuite(target.name, wakeCases, (one) => runWakeCase(one, target, options.caseTimeoutMs), options);
}

/** Runs one case alone, for a test framework that wants to do the counting. */
export async function runWakeCase(
  one: WakeCase,
  target: WakeTarget,
  timeoutMs: number = CASE_TIMEOUT_MS,
): Promise<WakeConformanceResult> {
  const reason = target.skip?.[one.name] ?? missing(one, target);
  if (reason !== undefined) return { case: one, status: "skipped", reason };
  const prefix = `conformance-${randomUUID().slice(0, 8)}`;
  return await playCase(one, (over) => new WakeScene(target, prefix, over), timeoutMs);
}

function missing({ needs }: WakeCase, target: WakeTarget): string | undefined {
  return needs.map((need) => target[need]).find((answer) => typeof answer === "string");
}
