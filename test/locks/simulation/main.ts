/**
 * The simulation of locks from the command line:
 *
 *     node test/locks/simulation/main.ts [--seeds N] [--from S]    many seeds
 *     node test/locks/simulation/main.ts --seed S                  one seed, with its whole story
 */
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { traceLine } from "./history.ts";
import { describeFailure, runSeeds } from "./run.ts";
import { World } from "./world.ts";

const CHUNK = 200;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "10000" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
  },
});

if (values.seed === undefined) await runMany(Number(values.from), Number(values.seeds));
else await runOne(Number(values.seed));

async function runOne(seed: number): Promise<void> {
  console.log(new World(seed).settings);
  for (const { history, violations } of await runSeeds([seed])) {
    for (const happening of history) console.log(traceLine(happening));
    for (const { promise, at, says } of violations) console.log(`VIOLATION ${promise} at ${at.toFixed(2)} ms: ${says}`);
  }
}

async function runMany(from: number, count: number): Promise<void> {
  const began = performance.now();
  let events = 0;
  for (let next = from; next < from + count; next += CHUNK) {
    const results = await runSeeds(Array.from({ length: CHUNK }, (_, index) => next + index));
    events += results.reduce((sum, { history }) => sum + history.length, 0);
    const failed = results.filter(({ violations }) => violations.length > 0);
    for (const result of failed.slice(0, 1)) console.log(describeFailure(result));
    if (failed.length > 0) {
      console.log(
        `Failed of this chunk: ${failed.map(({ seed, violations }) => `${seed} (${violations[0]?.promise ?? ""})`).join(", ")}`,
      );
      process.exit(1);
    }
  }
  const seconds = (performance.now() - began) / 1_000;
  console.log(`${count} seeds, ${events} happenings in ${seconds.toFixed(1)} s`);
}
