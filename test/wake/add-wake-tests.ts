import { describe, test } from "node:test";
import { runWakeCase, type WakeCase, wakeCases, type WakeTarget } from "../../src/conformance/index.ts";

/** The conformance suite of wakes, with a test per case. */
export function addWakeTests(target: WakeTarget): void {
  describe(`wakes over ${target.name} conform`, { concurrency: 8 }, () => {
    for (const one of wakeCases.filter(({ alone }) => !alone)) addTest(one, target);
  });
  describe(`wakes over ${target.name} conform when they are alone`, { concurrency: 1 }, () => {
    for (const one of wakeCases.filter(({ alone }) => alone)) addTest(one, target);
  });
}

function addTest(one: WakeCase, target: WakeTarget): void {
  test(`${one.promise}: ${one.name}`, async (context) => {
    const result = await runWakeCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
