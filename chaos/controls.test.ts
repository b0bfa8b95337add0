/** A run that cannot fail proves nothing: each planted flaw must be caught, by the rule that is about it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CONTROLS, flawOf, withFlaw } from "./controls/catalogue.ts";
import { play } from "./play-for-test.ts";
import { shortRun } from "./settings.ts";

/** Chosen once: whether a flaw shows within seconds is partly luck, and a test should not depend on it. */
const SEED = 2;
/** Most of such a run is waiting. */
const AT_ONCE = 3;

describe("a short run catches", { concurrency: AT_ONCE }, () => {
  for (const control of Object.keys(CONTROLS)) {
    const { breaks = [], story = "" } = flawOf(control);
    test(`${control}: ${story}`, { timeout: 120_000 }, async (context) => {
      await play(withFlaw(shortRun("sqlite", SEED), control), context, ({ violations }) => {
        const caught = violations.find(({ rule }) => breaks.includes(rule));
        assert.ok(caught, `It noticed ${violations.map(({ text }) => text).join(" ") || "nothing"}`);
        context.diagnostic(caught.text);
      });
    });
  }
});
