import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { describe, test } from "node:test";
import { PLANTED_BUGS } from "./simulation/planted.ts";
import { describeFailure, runSeeds } from "./simulation/run.ts";
import { traceLine } from "./simulation/history.ts";

const SEEDS = 3_000;
/** On a slow or busy machine fewer seeds are run, and their number is printed. */
const LONGEST_MS = 4_000;
const CHUNK = 200;
const SEEDS_PER_PLANTED_BUG = 400;
/** Small, because the first that is found ends the search. */
const PLANTED_CHUNK = 5;

describe("simulation of locks", () => {
  test("every promise holds, whatever goes wrong", async (context) => {
    const began = performance.now();
    const kinds = new Map<string, number>();
    let seeds = 0;
    while (seeds < SEEDS && performance.now() - began < LONGEST_MS) {
      const results = await runSeeds(Array.from({ length: CHUNK }, (_, index) => 1 + seeds + index));
      const failed = results.filter(({ violations }) => violations.length > 0);
      assert.deepEqual(failed.map(describeFailure), []);
      for (const { history } of results) {
        for (const one of history) {
          const kind = one.type === "fault" ? one.kind : one.type === "process" ? one.what : one.type;
          kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        }
      }
      seeds += CHUNK;
    }
    const listed = [...kinds].map(([kind, count]) => `${kind} ${count}`).join(", ");
    context.diagnostic(`${seeds} seeds in ${((performance.now() - began) / 1_000).toFixed(1)} s: ${listed}`);
    for (const kind of ["request lost", "reply lost", "slow", "hint lost", "crashes", "pauses", "clock step"]) {
      assert.ok((kinds.get(kind) ?? 0) > seeds / 20, `hardly any: ${kind}`);
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
