import { describe, test } from "node:test";
import { cases, type ConformanceTarget, runCase } from "../src/conformance/index.ts";

type Case = (typeof cases)[number];

/** Most of a case is waiting. */
const AT_ONCE = 8;

/** The conformance suite of engines, or some of its cases, with a test each. What a restart would disturb comes before. */
export function addEngineTests(title: string, target: ConformanceTarget, wanted: readonly Case[] = cases): void {
  const { alone = [], together = [] } = Object.groupBy(wanted, (one) =>
    one.alone || one.needsRestart ? "alone" : "together",
  );
  describe(`${title} conforms`, { concurrency: AT_ONCE }, () => {
    for (const one of together) addEngineTest(one, target);
  });
  describe(`${title} conforms when it is alone`, { concurrency: 1 }, () => {
    for (const one of alone) addEngineTest(one, target);
  });
}

export interface EngineTestOptions {
  /** For stores that take longer than the suite expects. */
  readonly timeoutMs?: number;
  /** When the case is over, however it ended. */
  readonly ended?: () => unknown;
}

export function addEngineTest(one: Case, target: ConformanceTarget, options: EngineTestOptions = {}): void {
  const { timeoutMs, ended } = options;
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target, timeoutMs).finally(ended);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
