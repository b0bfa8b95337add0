import { Worker } from "node:worker_threads";
import type { Failure } from "./run.ts";

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
  readonly grants: number;
  readonly duplicates: number;
  readonly slowestDrainMs: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly failures: readonly Failure[];
}

export interface PoolOptions {
  readonly from: number;
  /** Infinity: until it is told to stop. */
  readonly seeds: number;
  readonly planted?: string;
  readonly threads?: number;
  /** Asked before each chunk. Without one: until the first failure. */
  readonly goOn?: (soFar: ChunkResult) => boolean;
}

/** Enough to share the turns of the event loop, and few enough that a thread is never long out of reach. */
const CHUNK = 20;
const THREADS = 2;

const NOTHING: ChunkResult = {
  seeds: 0,
  events: 0,
  accepted: 0,
  grants: 0,
  duplicates: 0,
  slowestDrainMs: 0,
  faults: {},
  failures: [],
};

export async function runInThreads(options: PoolOptions): Promise<ChunkResult> {
  const { from, seeds, planted, threads = THREADS, goOn = ({ failures }) => failures.length === 0 } = options;
  let next = from;
  let total = NOTHING;
  const takeChunk = (): Chunk | undefined => {
    const count = Math.min(CHUNK, from + seeds - next);
    if (count <= 0 || !goOn(total)) return undefined;
    const chunk = { from: next, count, ...(planted === undefined ? {} : { planted }) };
    next += count;
    return chunk;
  };
  const run = (): Promise<void> =>
    runThread(takeChunk, (result) => {
      total = add(total, result);
    });
  await Promise.all(Array.from({ length: threads }, run));
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
    grants: a.grants + b.grants,
    duplicates: a.duplicates + b.duplicates,
    slowestDrainMs: Math.max(a.slowestDrainMs, b.slowestDrainMs),
    faults,
    failures: [...a.failures, ...b.failures],
  };
}
