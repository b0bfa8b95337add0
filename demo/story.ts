import type { Level } from "./history.ts";

/** Short, so that one sees what happens to the car of a worker that dies. */
export const LEASE_MS = 2_000;
export const WORKERS = ["worker 1", "worker 2", "worker 3", "worker 4"] as const;
export const CARS = ["car1", "car2", "car3", "car4", "car5", "car6", "car7", "car8"] as const;
export const QUEUE = "cars";

/** What is submitted as payload: the work is to take this long. */
export interface Job {
  readonly workMs: number;
  /** When the first attempt was cut short, the second is quicker: somebody is waiting to see the end. */
  readonly againMs: number;
}

export interface Scheduled {
  readonly atMs: number;
  readonly item: string;
  readonly car: string;
  readonly level: Level;
  readonly job: Job;
}

const ITEMS = 72;
const SUBMIT_FOR_MS = 6_400;
/** Uneven, as in life: the first cars get most of the work. */
const SHARES = [4, 3, 3, 3, 2, 2, 2, 2] as const;

/** The item whose worker is killed: long enough that the worker is certainly still at it. */
export const DOOMED: Scheduled = {
  atMs: 2_600,
  item: "item-x",
  car: "car6",
  level: "high",
  job: { workMs: 10_000, againMs: 500 },
};
/** How long the worker is left at it first, so that one sees the two together. */
export const KILL_AFTER_MS = 700;

/** The same every time, so that two people who compare see the same: no chance is involved but that of timing. */
export function schedule(): readonly Scheduled[] {
  const random = numbers(7);
  const items = Array.from({ length: ITEMS }, (_, index): Scheduled => {
    const level = pick(random(), [1, 2, 2], ["high", "normal", "low"] as const);
    const workMs = 240 + Math.round(random() * 360);
    return {
      // A crowd at the beginning, so that there is something to choose from; then one by one.
      atMs: index < ITEMS / 4 ? 0 : Math.round((index / ITEMS) * SUBMIT_FOR_MS),
      item: `item-${index + 1}`,
      car: pick(random(), SHARES, CARS),
      level,
      job: { workMs, againMs: workMs },
    };
  });
  return [...items, DOOMED].toSorted((a, b) => a.atMs - b.atMs);
}

/** One of the choices, by their shares. */
function pick<T>(chance: number, shares: readonly number[], choices: readonly T[]): T {
  let left = chance * shares.reduce((sum, share) => sum + share, 0);
  const index = shares.findIndex((share) => (left -= share) < 0);
  return choices[index] ?? (choices[0] as T);
}

/** Park and Miller's generator: what matters here is only that it always gives the same. */
function numbers(seed: number): () => number {
  let state = seed * 1_000_003;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
