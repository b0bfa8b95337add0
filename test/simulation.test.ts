import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { describe, test } from "node:test";
import { PLANTED_BUGS } from "./simulation/planted/catalogue.ts";
import { runOnAllCores } from "./simulation/pool.ts";
import { describeFailure, describeTotals } from "./simulation/report.ts";
import { runSeeds, traceSeed } from "./simulation/run-seeds.ts";
import { countImmediates } from "./simulation/turns.ts";

const SEEDS = 10_000;
/** On a slow or busy machine fewer seeds are run, and their number is printed. */
const LONGEST_MS = 6_000;
const SEEDS_PER_PLANTED_BUG = 300;
/** Small, because the first that is found ends the search. */
const PLANTED_CHUNK = 10;

// Here for the runs in this thread; the pool's threads do it themselves.
countImmediates();

describe("simulation", () => {
  test("every guarantee holds, whatever goes wrong", async (context) => {
    const begun = performance.now();
    const total = await runOnAllCores({
      from: 1,
      seeds: SEEDS,
      goOn: () => performance.now() - begun < LONGEST_MS,
    });
    for (const line of describeTotals(total, performance.now() - begun).split("\n")) context.diagnostic(line);
    assert.deepEqual(total.failures.map(describeFailure), []);
    assert.ok(total.seeds >= SEEDS / 100, `only ${total.seeds} seeds were run`);
    for (const kind of [
      "request lost",
      "reply lost",
      "duplicated",
      "slow",
      "crash",
      "pause",
      "partition",
      "clock step",
    ]) {
      assert.ok((total.faults[kind] ?? 0) > total.seeds / 100, `hardly any fault of kind: ${kind}`);
    }
  });

  test("a seed tells the whole story: run twice, it is the same to the last detail", async () => {
    for (const seed of [1, 2, 3, 17, 4711]) {
      const first = await traceSeed(seed);
      const second = await traceSeed(seed);
      assert.ok(first.lines.length > 10);
      assert.equal(first.hash, second.hash, `seed ${seed}`);
    }
  });

  for (const bug of PLANTED_BUGS) {
    test(`the checker finds it when ${bug.name}`, async (context) => {
      for (let from = 1; from <= SEEDS_PER_PLANTED_BUG; from += PLANTED_CHUNK) {
        const seeds = Array.from({ length: PLANTED_CHUNK }, (_, index) => from + index);
        for (const { seed, failure } of await runSeeds(seeds, bug.make)) {
          const [first] = failure?.violations ?? [];
          if (first === undefined || !bug.breaks.includes(first.guarantee)) continue;
          context.diagnostic(`seed ${seed}: ${first.guarantee}: ${first.says}`);
          return;
        }
      }
      assert.fail(`nothing was found in ${SEEDS_PER_PLANTED_BUG} seeds`);
    });
  }
});
