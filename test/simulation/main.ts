/**
 * The simulation from the command line:
 *
 *     node test/simulation/main.ts [--seeds N] [--from S] [--minutes M]    many seeds, on all cores
 *     node test/simulation/main.ts --seed S                                one seed, with its whole trace
 */
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { type ChunkResult, runOnAllCores } from "./pool.ts";
import { describeFailure, describeTotals } from "./report.ts";
import { traceSeed } from "./run-seeds.ts";
import { countImmediates } from "./turns.ts";
import { World } from "./world.ts";

const PROGRESS_EVERY_MS = 10_000;

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    minutes: { type: "string" },
  },
});

if (values.seed === undefined) await runMany(Number(values.from), values.seeds, values.minutes);
else await runOne(Number(values.seed));

async function runOne(seed: number): Promise<void> {
  countImmediates();
  const { lines, hash, result } = await traceSeed(seed);
  console.log(JSON.stringify(new World(seed).settings, undefined, 2));
  for (const line of lines) console.log(line);
  console.log(`trace ${hash}`);
  for (const { guarantee, at, key, says } of result.failure?.violations ?? []) {
    console.log(`VIOLATION ${guarantee} at ${at} ms, key ${key ?? "(all)"}: ${says}`);
  }
  // Not exitCode: a world that was only looked at leaves timers of its own behind.
  process.exit(result.failure === undefined ? 0 : 1);
}

async function runMany(from: number, seeds: string | undefined, minutes: string | undefined): Promise<void> {
  const begun = performance.now();
  const limitMs = minutes === undefined ? Infinity : Number(minutes) * 60_000;
  const count = seeds === undefined ? (minutes === undefined ? 10_000 : Infinity) : Number(seeds);
  let shownAt = begun;
  const total = await runOnAllCores({
    from,
    seeds: count,
    goOn: () => performance.now() - begun < limitMs,
    onProgress: (soFar: ChunkResult) => {
      if (performance.now() - shownAt < PROGRESS_EVERY_MS) return;
      shownAt = performance.now();
      console.log(`${soFar.seeds} seeds, from ${from}, after ${Math.round((shownAt - begun) / 1000)} s`);
    },
  });
  console.log(describeTotals(total, performance.now() - begun));
  for (const failure of total.failures) console.log(describeFailure(failure));
  process.exitCode = total.failures.length === 0 ? 0 : 1;
}
