/** A run that cannot fail proves nothing: each planted flaw must be caught, by the rule that is about it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { draw } from "../test/kit/draw.ts";
import { CONTROLS, flawOf, withFlaw } from "./controls/catalogue.ts";
import { play } from "./play-for-test.ts";
import { shortRun } from "./settings.ts";

/** Whether a flaw shows within seconds is partly luck: the machine's timing is not in the seed. */
const SEEDS = [2, 3, 4];
/** Of the flaws, drawn anew each time: a run of each takes a tenth of all the tests together. */
const PLAYED = 1;
/** Most of such a run is waiting. */
const AT_ONCE = 3;

describe("a short run catches", { concurrency: AT_ONCE }, () => {
  for (const control of draw.some("flaws that are planted", Object.keys(CONTROLS), PLAYED)) {
    const { breaks = [], story = "" } = flawOf(control);
    test(`${control}: ${story}`, { timeout: 240_000 }, async (context) => {
      const noticed: string[] = [];
      for (const seed of SEEDS) {
        let isCaught = false;
        await play(withFlaw(shortRun("sqlite", seed), control), context, ({ violations }) => {
          const caught = violations.find(({ rule }) => breaks.includes(rule));
          isCaught = caught !== undefined;
          if (caught !== undefined) context.diagnostic(caught.text);
          else noticed.push(...violations.map(({ text }) => text));
        });
        if (isCaught) return;
      }
      assert.fail(`In ${SEEDS.length} runs it noticed ${noticed.join(" ") || "nothing"}`);
    });
  }
});
