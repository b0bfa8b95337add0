/** One thread of a pool: runs the seeds it is told to, and answers with what it found. */
import { inspect } from "node:util";
import { parentPort } from "node:worker_threads";
import type { Statistics } from "./checker/check.ts";
import { PLANTED_BUGS } from "./planted/catalogue.ts";
import type { MakePlant } from "./planted/plant.ts";
import type { Chunk, ChunkResult } from "./pool.ts";
import { runSeeds, type SeedResult } from "./run-seeds.ts";
import { countImmediates } from "./turns.ts";

countImmediates();
// The simulation makes errors by the thousand, and nobody reads their stacks.
Error.stackTraceLimit = 0;

const NO_STATISTICS: Statistics = {
  faults: new Map(),
  accepted: 0,
  started: 0,
  further: 0,
  reports: 0,
  alone: 0,
  duplicates: 0,
  rejectedEffects: 0,
};

/** An error that nobody caught, in code that nobody awaits. */
let stray: unknown;
process.on("unhandledRejection", (reason) => (stray ??= reason));
process.on("uncaughtException", (error) => (stray ??= error));

parentPort?.on("message", (chunk: Chunk) => {
  void run(chunk).then((result) => parentPort?.postMessage(result));
});

async function run({ from, count, planted }: Chunk): Promise<ChunkResult> {
  const seeds = Array.from({ length: count }, (_, index) => from + index);
  const make = PLANTED_BUGS.find(({ name }) => name === planted)?.make;
  try {
    const results = await runSeeds(seeds, make);
    if (stray === undefined) return summary(results);
  } catch (error) {
    stray = error;
  }
  // Side by side nobody can say whose it was.
  const results: SeedResult[] = [];
  for (const seed of seeds) results.push(await runAlone(seed, make));
  return summary(results);
}

async function runAlone(seed: number, make: MakePlant | undefined): Promise<SeedResult> {
  stray = undefined;
  let result: SeedResult = { seed, events: 0, statistics: NO_STATISTICS, failure: undefined };
  try {
    [result = result] = await runSeeds([seed], make);
  } catch (error) {
    stray = error;
  }
  if (stray === undefined) return result;
  const says = inspect(stray);
  stray = undefined;
  return {
    ...result,
    failure: { seed, violations: [{ guarantee: "surprise", at: 0, key: undefined, says }], trace: [] },
  };
}

function summary(results: readonly SeedResult[]): ChunkResult {
  const faults: Record<string, number> = {};
  const totals = {
    events: 0,
    accepted: 0,
    started: 0,
    further: 0,
    reports: 0,
    alone: 0,
    duplicates: 0,
    rejectedEffects: 0,
  };
  for (const { events, statistics } of results) {
    totals.events += events;
    totals.accepted += statistics.accepted;
    totals.started += statistics.started;
    totals.further += statistics.further;
    totals.reports += statistics.reports;
    totals.alone += statistics.alone;
    totals.duplicates += statistics.duplicates;
    totals.rejectedEffects += statistics.rejectedEffects;
    for (const [kind, count] of statistics.faults) faults[kind] = (faults[kind] ?? 0) + count;
  }
  return { seeds: results.length, ...totals, faults, failures: results.flatMap(({ failure }) => failure ?? []) };
}
