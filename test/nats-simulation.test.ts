import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { draw } from "./kit/draw.ts";
import { Seeds, seedTimeoutMs } from "./kit/seeds.ts";
import { drawPlan, type Plan } from "./nats-simulation/plan.ts";
import { PLANTED_BUGS } from "./nats-simulation/planted.ts";
import { runInThreads } from "./nats-simulation/pool.ts";
import { describeFailure, describeTotals } from "./nats-simulation/report.ts";
import { runPlans, runSeeds, traceSeed } from "./nats-simulation/run.ts";
import { PLAIN_SCRIPTS, SCRIPTS, spread, SWEEPS } from "./nats-simulation/scripts.ts";
import { Random } from "./kit/random.ts";
import { countImmediates } from "./simulation/turns.ts";

const BOUNDS = { seeds: 4_000, longestMs: 5_000 };
/** Fewer say nothing about the rare faults. */
const FEWEST = 20;
/** Of the variations of a script or a sweep, drawn by the seed: all of them take a minute and a half. */
const SCRIPTED_AT_A_TIME = draw.isAll ? 1 : 10;
const SWEPT_AT_A_TIME = draw.isAll ? 1 : 20;
/** One number draws the variations of all scripts and sweeps. */
const DRAWN_BY = new Seeds(BOUNDS).from;
const drawn = new Random(DRAWN_BY);
/** From a seed on that is always the same: how soon a flaw is found is known, and a test of the checker is no lottery. */
const SEEDS_PER_PLANTED_BUG = 300;
/** Side by side. */
const TOGETHER = 20;
/** Few, because the first that is found ends the search. */
const PLANTED_TOGETHER = 3;

// Here for the runs in this thread; the pool's threads do it themselves.
countImmediates();

describe("simulation of the NATS engine", () => {
  test("every guarantee holds, whatever goes wrong", { timeout: seedTimeoutMs(120_000) }, async (context) => {
    const seeds = new Seeds(BOUNDS);
    const total = await runInThreads({
      from: seeds.from,
      seeds: seeds.count,
      goOn: ({ failures }) => failures.length === 0 && seeds.goOn(),
    });
    seeds.tell(context, "the simulation of the NATS engine", total.seeds);
    for (const line of describeTotals(total, seeds.elapsedMs).split("\n")) context.diagnostic(line);
    assert.deepEqual(total.failures.map(describeFailure), []);
    if (seeds.count < FEWEST) return;
    assert.ok(total.seeds >= FEWEST, `only ${total.seeds} seeds were played`);
    for (const kind of ["crash", "stop", "cut", "server restart", "request lost", "reply lost", "slow"])
      assert.ok((total.faults[kind] ?? 0) > total.seeds / 100, `hardly any fault of kind: ${kind}`);
  });

  test("a seed tells the whole story: run twice, it is the same to the last detail", async () => {
    for (const seed of [1, 17]) {
      const first = await traceSeed(seed);
      const second = await traceSeed(seed);
      assert.ok(first.lines.length > 10);
      assert.deepEqual(first.lines, second.lines, `seed ${seed}`);
    }
  });

  for (const { name, plans } of [...SCRIPTS, ...PLAIN_SCRIPTS]) {
    test(name, async (context) => {
      const first = drawn.between(0, SCRIPTED_AT_A_TIME - 1);
      context.diagnostic(`one in ${SCRIPTED_AT_A_TIME}, from number ${first + 1} on, BATON_SEED=${DRAWN_BY}`);
      await playAll(plans.filter((_, index) => index % SCRIPTED_AT_A_TIME === first));
    });
  }

  for (const sweep of SWEEPS) {
    test(sweep.name, async (context) => {
      const [calm] = await runPlans([sweep.plan]);
      const count = calm?.interfered ?? 0;
      context.diagnostic(`${count} messages`);
      assert.ok(count > 3, `only ${count} messages to interfere with`);
      const first = drawn.between(0, SWEPT_AT_A_TIME - 1);
      context.diagnostic(`one in ${SWEPT_AT_A_TIME}, from number ${first + 1} on, BATON_SEED=${DRAWN_BY}`);
      await playAll(spread(sweep, count).filter((_, index) => index % SWEPT_AT_A_TIME === first));
    });
  }

  for (const bug of PLANTED_BUGS) {
    test(`the checker finds it when ${bug.name}`, async (context) => {
      for (let tried = 0; tried < SEEDS_PER_PLANTED_BUG; tried += PLANTED_TOGETHER) {
        const from = (bug.from ?? 1) + tried;
        const seeds = Array.from({ length: PLANTED_TOGETHER }, (_, index) => from + index);
        for (const { seed, failure } of await runSeeds(seeds, bug)) {
          const [first] = failure?.violations ?? [];
          if (first === undefined || !bug.breaks.includes(first.guarantee)) continue;
          context.diagnostic(`seed ${seed}: ${first.guarantee}: ${first.says.slice(0, 200)}`);
          return;
        }
      }
      assert.fail(`nothing was found in ${SEEDS_PER_PLANTED_BUG} seeds`);
    });
  }

  test("without faults nothing is done twice", async () => {
    const calm = Array.from({ length: 8 }, (_, index): Plan => {
      const plan = drawPlan(index + 1);
      return {
        ...plan,
        faults: [],
        careless: 0,
        lateMs: 0,
        rates: { ...plan.rates, delayed: 0, requestLost: 0, replyLost: 0 },
      };
    });
    await playAll(calm);
  });
});

async function playAll(plans: readonly Plan[]): Promise<void> {
  const failures: string[] = [];
  for (let from = 0; from < plans.length && failures.length === 0; from += TOGETHER) {
    const results = await runPlans(plans.slice(from, from + TOGETHER));
    for (const [at, { failure }] of results.entries())
      if (failure !== undefined) failures.push(`run ${from + at + 1}: ${describeFailure(failure)}`);
  }
  assert.deepEqual(failures, []);
}
