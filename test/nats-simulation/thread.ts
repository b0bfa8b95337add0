/** One thread of a pool: runs the seeds it is told to, and answers with what it found. */
import { inspect } from "node:util";
import { parentPort } from "node:worker_threads";
import { countImmediates } from "../simulation/turns.ts";
import { PLANTED_BUGS } from "./planted.ts";
import type { Chunk, ChunkResult } from "./pool.ts";
import { type Failure, type Result, runSeeds } from "./run.ts";

countImmediates();
// The simulation makes errors by the thousand, and nobody reads their stacks.
Error.stackTraceLimit = 0;

/** An error that nobody caught, in code that nobody awaits. */
let stray: unknown;
process.on("unhandledRejection", (reason) => (stray ??= reason));
process.on("uncaughtException", (error) => (stray ??= error));

parentPort?.on("message", (chunk: Chunk) => {
  void run(chunk).then((result) => parentPort?.postMessage(result));
});

async function run({ from, count, planted }: Chunk): Promise<ChunkResult> {
  const seeds = Array.from({ length: count }, (_, index) => from + index);
  const bug = PLANTED_BUGS.find(({ name }) => name === planted);
  const results = await runSeeds(seeds, bug);
  const result = summary(results);
  if (stray === undefined || bug !== undefined) return result;
  const says = `one of the seeds ${from} to ${from + count - 1}: ${inspect(stray)}`;
  const failure: Failure = {
    seed: from,
    violations: [{ guarantee: "surprise", at: 0, key: undefined, says }],
    trace: [],
  };
  return { ...result, failures: [...result.failures, failure] };
}

function summary(results: readonly Result[]): ChunkResult {
  const faults: Record<string, number> = {};
  const totals = { events: 0, accepted: 0, grants: 0, duplicates: 0 };
  for (const { events, statistics } of results) {
    totals.events += events;
    totals.accepted += statistics.accepted;
    totals.grants += statistics.grants;
    totals.duplicates += statistics.duplicates;
    for (const [kind, count] of Object.entries(statistics.faults)) faults[kind] = (faults[kind] ?? 0) + count;
  }
  return {
    seeds: results.length,
    ...totals,
    slowestDrainMs: Math.max(0, ...results.map(({ statistics }) => statistics.drainMs)),
    faults,
    failures: results.flatMap(({ failure }) => failure ?? []),
  };
}
