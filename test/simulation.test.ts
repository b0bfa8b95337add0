import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Seeds, seedTimeoutMs } from "./kit/seeds.ts";
import { PLANTED_BUGS } from "./simulation/planted/catalogue.ts";
import { runOnAllCores } from "./simulation/pool.ts";
import { describeFailure, describeTotals } from "./simulation/report.ts";
import { runSeeds, traceSeed } from "./simulation/run-seeds.ts";
import { countImmediates } from "./simulation/turns.ts";

const BOUNDS = { seeds: 10_000, longestMs: 6_000 };
/** Fewer say nothing about the rare faults. */
const FEWEST = 100;
/** From a seed on that is always the same: how soon a flaw is found is known, and a test of the checker is no lottery. */
const SEEDS_PER_PLANTED_BUG = 300;
/** Small, because the first that is found ends the search. */
const PLANTED_CHUNK = 10;

// Here for the runs in this thread; the pool's threads do it themselves.
countImmediates();

describe("simulation", () => {
  test("every guarantee holds, whatever goes wrong", { timeout: seedTimeoutMs(120_000) }, async (context) => {
    const seeds = new Seeds(BOUNDS);
    const total = await runOnAllCores({ from: seeds.from, seeds: seeds.count, goOn: seeds.goOn });
    seeds.tell(context, "the worker's simulation", total.seeds);
    for (const line of describeTotals(total, seeds.elapsedMs).split("\n")) context.diagnostic(line);
    assert.deepEqual(total.failures.map(describeFailure), []);
    if (seeds.count < FEWEST) return;
    assert.ok(total.seeds >= FEWEST, `only ${total.seeds} seeds were played`);
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
    const happened = {
      "begun behind another of its run": total.further,
      "reported while a run went on": total.reports,
    };
    for (const [what, count] of Object.entries({ ...happened, "run alone in its process": total.alone }))
      assert.ok(count > total.seeds / 100, `hardly any item was ${what}`);
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
