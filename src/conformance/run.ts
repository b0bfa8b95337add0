import { randomUUID } from "node:crypto";
import type { ConformanceCase } from "./case.ts";
import { cases } from "./cases.ts";
import { NotConforming } from "./expect.ts";
import { Scene } from "./scene.ts";
import type { ConformanceTarget } from "./target.ts";

export type ConformanceResult =
  | { readonly case: ConformanceCase; readonly status: "passed"; readonly ms: number }
  | { readonly case: ConformanceCase; readonly status: "failed"; readonly ms: number; readonly error: Error }
  | { readonly case: ConformanceCase; readonly status: "skipped"; readonly reason: string };

export interface ConformanceOptions {
  readonly onResult?: (result: ConformanceResult) => void;
  readonly filter?: (one: ConformanceCase) => boolean;
  /** Cases that run at a time; each has queues of its own. Default 8. */
  readonly concurrency?: number;
  /** A case that takes longer waits for something that never comes. Default 30,000. */
  readonly caseTimeoutMs?: number;
}

export interface ConformanceSummary {
  readonly target: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly ConformanceResult[];
}

const CASE_TIMEOUT_MS = 30_000;

/** Puts a store to the test. Prints nothing and throws nothing: what to do about a failure is the caller's business. */
export async function runConformance(
  target: ConformanceTarget,
  { onResult, filter = () => true, concurrency = 8, caseTimeoutMs = CASE_TIMEOUT_MS }: ConformanceOptions = {},
): Promise<ConformanceSummary> {
  const results: ConformanceResult[] = [];
  const chosen = cases.filter(filter);
  const work = async (pending: ConformanceCase[]): Promise<void> => {
    for (let one = pending.shift(); one !== undefined; one = pending.shift()) {
      const result = await runCase(one, target, caseTimeoutMs);
      results.push(result);
      onResult?.(result);
    }
  };
  const together = chosen.filter(({ alone }) => !alone);
  await Promise.all(Array.from({ length: concurrency }, () => work(together)));
  // A restart would pull the store away from under the other cases.
  await work(chosen.filter(({ alone }) => alone));
  const count = (wanted: ConformanceResult["status"]): number =>
    results.filter(({ status }) => status === wanted).length;
  return { target: target.name, passed: count("passed"), failed: count("failed"), skipped: count("skipped"), results };
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
  const began = performance.now();
  const over = new AbortController();
  const scene = new Scene(target, `conformance-${randomUUID()}`, over.signal);
  try {
    await within(timeoutMs, playCase(one, scene));
    return { case: one, status: "passed", ms: performance.now() - began };
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    return { case: one, status: "failed", ms: performance.now() - began, error };
  } finally {
    over.abort();
    // An engine whose close fails or hangs has said so in the cases about closing.
    await within(timeoutMs, scene.end()).catch(() => undefined);
  }
}

async function playCase(one: ConformanceCase, scene: Scene): Promise<void> {
  await scene.begin();
  await one.run(scene);
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  // This timer also keeps the process alive while an engine has nothing but timers that do not.
  const timer = setTimeout(
    () => reject(new NotConforming(`Not finished after ${ms} ms: something never resolved.`)),
    ms,
  );
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
