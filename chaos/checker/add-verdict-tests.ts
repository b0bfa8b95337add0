import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Fact } from "../history/fact.ts";
import { judge } from "./check.ts";
import type { Rule } from "./violation.ts";
import { history } from "./written.ts";

export type Facts = readonly (Fact | readonly Fact[])[];

/** Histories by hand, by what they tell: those that keep every promise, and those that break the one of a rule. */
export function addVerdictTests(
  good: Readonly<Record<string, Facts>>,
  bad: Readonly<Record<string, readonly [Rule, Facts]>>,
): void {
  describe("the checker accepts", () => {
    for (const [name, facts] of Object.entries(good)) {
      test(name, () => {
        const { violations } = judge(history(...facts));
        assert.deepEqual(
          violations.map(({ text }) => text),
          [],
        );
      });
    }
  });

  describe("the checker finds", () => {
    for (const [name, [rule, facts]] of Object.entries(bad)) {
      test(`${name} (${rule})`, () => {
        const { violations } = judge(history(...facts));
        const found = violations.filter((violation) => violation.rule === rule);
        assert.notDeepEqual(found, [], `It found: ${violations.map(({ text }) => text).join(" ") || "nothing"}`);
        for (const { text } of found) assert.match(text, /\d s\b|items? /, "It says when, or how many.");
      });
    }
  });
}
