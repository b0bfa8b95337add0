/** One thread of a pool: runs the seeds it is told to, and answers with what it found. */
import { parentPort } from "node:worker_threads";
import { PLANTED_BUGS } from "./planted/catalogue.ts";
import type { Chunk, ChunkResult } from "./pool.ts";
import { runSeeds, type SeedResult } from "./run-seeds.ts";
import { countImmediates } from "./turns.ts";

countImmediates();
// The simulation makes errors by the thousand, and nobody reads their stacks.
Error.stackTraceLimit = 0;

parentPort?.on("message", (chunk: Chunk) => {
  void run(chunk).then((result) => parentPort?.postMessage(result));
});

async function run({ from, count, planted }: Chunk): Promise<ChunkResult> {
  const seeds = Array.from({ length: count }, (_, index) => from + index);
  const make = PLANTED_BUGS.find(({ name }) => name === planted)?.make;
  try {
    return summary(await runSeeds(seeds, make));
  } catch (error) {
    // One of them, and side by side nobody can say which.
    return summary(await oneByOne(seeds, error));
  }
}

async function oneByOne(seeds: readonly number[], error: unknown): Promise<SeedResult[]> {
  const results: SeedResult[] = [];
  for (const seed of seeds) {
    try {
      results.push(...(await runSeeds([seed])));
    } catch (cause) {
      throw new Error(`Seed ${seed} could not be run to its end.`, { cause });
    }
  }
  throw new Error("Some seed failed only in company.", { cause: error });
}

function summary(results: readonly SeedResult[]): ChunkResult {
  const faults: Record<string, number> = {};
  const totals = { events: 0, accepted: 0, started: 0, duplicates: 0, rejectedEffects: 0 };
  for (const { events, statistics } of results) {
    totals.events += events;
    totals.accepted += statistics.accepted;
    totals.started += statistics.started;
    totals.duplicates += statistics.duplicates;
    totals.rejectedEffects += statistics.rejectedEffects;
    for (const [kind, count] of statistics.faults) faults[kind] = (faults[kind] ?? 0) + count;
  }
  return { seeds: results.length, ...totals, faults, failures: results.flatMap(({ failure }) => failure ?? []) };
}
