import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Seeds, seedTimeoutMs } from "../kit/seeds.ts";
import { PLANTED_BUGS } from "./simulation/planted.ts";
import { describeFailure, runSeeds } from "./simulation/run.ts";
import { traceLine } from "./simulation/history.ts";

const BOUNDS = { seeds: 3_000, longestMs: 4_000 };
/** Fewer say nothing about the rare faults. */
const FEWEST = 100;
const CHUNK = 200;
/** From a seed on that is always the same: how soon a flaw is found is known, and a test of the checker is no lottery. */
const SEEDS_PER_PLANTED_BUG = 400;
/** Small, because the first that is found ends the search. */
const PLANTED_CHUNK = 5;

describe("simulation of locks", () => {
  test("every promise holds, whatever goes wrong", { timeout: seedTimeoutMs(120_000) }, async (context) => {
    const seeds = new Seeds(BOUNDS);
    const kinds = new Map<string, number>();
    let played = 0;
    while (played < seeds.count && seeds.goOn()) {
      const chunk = Math.min(CHUNK, seeds.count - played);
      const results = await runSeeds(Array.from({ length: chunk }, (_, index) => seeds.from + played + index));
      const failed = results.filter(({ violations }) => violations.length > 0);
      assert.deepEqual(failed.map(describeFailure), []);
      for (const { history } of results) {
        for (const one of history) {
          const kind = one.type === "fault" ? one.kind : one.type === "process" ? one.what : one.type;
          kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        }
      }
      played += chunk;
    }
    const listed = [...kinds].map(([kind, count]) => `${kind} ${count}`).join(", ");
    seeds.tell(context, "the simulation of locks", played);
    context.diagnostic(listed);
    if (seeds.count < FEWEST) return;
    for (const kind of ["request lost", "reply lost", "slow", "hint lost", "crashes", "pauses", "clock step"]) {
      assert.ok((kinds.get(kind) ?? 0) > played / 20, `hardly any: ${kind}`);
    }
  });

  test("a seed tells the whole story: run twice, it is the same to the last detail", async () => {
    const seeds = [1, 2, 3, 17, 4711];
    const [first, second] = [await runSeeds(seeds), await runSeeds(seeds)];
    const stories = (results: typeof first): string[] => results.flatMap(({ history }) => history.map(traceLine));
    assert.deepEqual(stories(first), stories(second));
    assert.ok(stories(first).length > 100);
  });

  for (const bug of PLANTED_BUGS) {
    test(`the checker finds it when ${bug.name}`, async (context) => {
      for (let tried = 0; tried < SEEDS_PER_PLANTED_BUG; tried += PLANTED_CHUNK) {
        const from = (bug.from ?? 1) + tried;
        const seeds = Array.from({ length: PLANTED_CHUNK }, (_, index) => from + index);
        for (const { seed, violations } of await runSeeds(seeds, bug.make)) {
          const [first] = violations;
          if (first === undefined || !bug.breaks.includes(first.promise)) continue;
          context.diagnostic(`seed ${seed}: ${first.promise}: ${first.says}`);
          return;
        }
      }
      assert.fail(`nothing was found in ${SEEDS_PER_PLANTED_BUG} seeds`);
    });
  }
});
