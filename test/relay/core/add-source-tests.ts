import { describe, test } from "node:test";
import { runSourceCase, sourceCases, type SourceTarget } from "../../../src/conformance/index.ts";

/** The conformance suite of the relay's sources, with a test per case. */
export function addSourceTests(title: string, target: SourceTarget, concurrency = 8): void {
  describe(`${title} conforms`, { concurrency }, () => {
    for (const one of sourceCases) {
      test(`${one.promise}: ${one.name}`, async (context) => {
        const result = await runSourceCase(one, target);
        if (result.status === "skipped") context.skip(result.reason);
        if (result.status === "failed") throw result.error;
      });
    }
  });
}
