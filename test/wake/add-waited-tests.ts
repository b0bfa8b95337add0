import { describe, test } from "node:test";
import { cases, type ConformanceTarget, runCase } from "../../src/conformance/index.ts";

/** Everything that somebody waits for; the rest of an engine does not know of wakes. */
const waited = cases.filter(({ guarantee, name }) => guarantee === "G7" || /hold|lost|outcome|told|woken/.test(name));

/** The cases of the engines' suite that need wakes, with a test each. */
export function addWaitedTests(target: ConformanceTarget): void {
  describe(`${target.name} conforms`, { concurrency: 8 }, () => {
    for (const one of waited.filter(({ alone }) => !alone)) addTest(one, target);
  });
  describe(`${target.name} conforms when it is alone`, { concurrency: 1 }, () => {
    for (const one of waited.filter(({ alone }) => alone)) addTest(one, target);
  });
}

function addTest(one: (typeof cases)[number], target: ConformanceTarget): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
