import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import type { TestContext } from "node:test";
import { figuresOf } from "./checker/figures.ts";
import { play } from "./play-for-test.ts";
import { figureRows } from "./report/figure-rows.ts";
import type { Store } from "./scene.ts";
import { halfMinuteRun } from "./settings.ts";

const MOST_SHOWN = 20;

export async function assertGood(store: Store, context: TestContext): Promise<void> {
  const seed = Number(process.env["BATON_SEED"] ?? randomInt(1_000_000));
  await play(halfMinuteRun(store, seed), context, ({ evidence, violations, gaps }) => {
    const figures = figuresOf(evidence);
    for (const { name, value } of figureRows(figures)) context.diagnostic(`${name}: ${value}`);
    // How fast it is, is for the long run to say: a test must not depend on what else its machine does.
    const broken = violations.filter(({ rule }) => rule !== "takeover" && rule !== "prompt");
    assert.deepEqual(
      broken.slice(0, MOST_SHOWN).map(({ text }) => text),
      [],
      `BATON_SEED=${seed}`,
    );
    assert.deepEqual(gaps, [], `BATON_SEED=${seed}`);
  });
}
