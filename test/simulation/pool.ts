import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Failure } from "./run-seeds.ts";

export interface Chunk {
  readonly from: number;
  readonly count: number;
  /** Name of a planted bug. */
  readonly planted?: string;
}

export interface ChunkResult {
  readonly seeds: number;
  readonly events: number;
  readonly accepted: number;
  readonly started: number;
  readonly further: number;
  readonly reports: number;
  readonly alone: number;
  readonly duplicates: number;
  readonly rejectedEffects: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly failures: readonly Failure[];
}

export interface PoolOptions {
  readonly from: number;
  /** Infinity: until the time is over. */
  readonly seeds: number;
  readonly planted?: string;
  /** Asked before each chunk. */
  readonly goOn?: (soFar: ChunkResult) => boolean;
  readonly onProgress?: (soFar: ChunkResult) => void;
}

/** Enough to share the turns of the event loop, and few enough that a thread is never long out of reach. */
const CHUNK = 50;

const NOTHING: ChunkResult = {
  seeds: 0,
  events: 0,
  accepted: 0,
  started: 0,
  further: 0,
  reports: 0,
  alone: 0,
  duplicates: 0,
  rejectedEffects: 0,
  faults: {},
  failures: [],
};

/** Runs seeds on all cores, and stops early at the first failure. */
export async function runOnAllCores(options: PoolOptions): Promise<ChunkResult> {
  const { from, seeds, planted, goOn = () => true, onProgress } = options;
  let next = from;
  let total = NOTHING;
  const takeChunk = (): Chunk | undefined => {
    const count = Math.min(CHUNK, from + seeds - next);
    if (count <= 0 || total.failures.length > 0 || !goOn(total)) return undefined;
    const chunk = { from: next, count, ...(planted === undefined ? {} : { planted }) };
    next += count;
    return chunk;
  };
  const threads = Math.min(availableParallelism(), Math.ceil(seeds / CHUNK));
  await Promise.all(
    Array.from({ length: threads }, () =>
      runThread(takeChunk, (result) => {
        total = add(total, result);
        onProgress?.(total);
      }),
    ),
  );
  return total;
}

async function runThread(takeChunk: () => Chunk | undefined, onResult: (result: ChunkResult) => void): Promise<void> {
  const thread = new Worker(new URL("./thread.ts", import.meta.url));
  try {
    await new Promise<void>((resolve, reject) => {
      const send = (): void => {
        const chunk = takeChunk();
        if (chunk === undefined) resolve();
        else thread.postMessage(chunk);
      };
      thread.on("message", (result: ChunkResult) => {
        onResult(result);
        send();
      });
      thread.once("error", reject);
      send();
    });
  } finally {
    await thread.terminate();
  }
}

function add(a: ChunkResult, b: ChunkResult): ChunkResult {
  const faults = { ...a.faults };
  for (const [kind, count] of Object.entries(b.faults)) faults[kind] = (faults[kind] ?? 0) + count;
  return {
    seeds: a.seeds + b.seeds,
    events: a.events + b.events,
    accepted: a.accepted + b.accepted,
    started: a.started + b.started,
    further: a.further + b.further,
    reports: a.reports + b.reports,
    alone: a.alone + b.alone,
    duplicates: a.duplicates + b.duplicates,
    rejectedEffects: a.rejectedEffects + b.rejectedEffects,
    faults,
    failures: [...a.failures, ...b.failures],
  };
}
