/** What every process of a run knows: the queue, its levels, and what an item carries. */

export const STORES = ["sqlite", "nats", "nats-cluster", "postgres", "redis"] as const;
export type Store = (typeof STORES)[number];

export const QUEUE = "chaos";
/** Most urgent first. */
export const LEVELS = ["high", "normal", "low"] as const;
export type Level = (typeof LEVELS)[number];

export const KEYS = 200;

/** A crash counts as an attempt; an item that is hit again and again must not be given up for it. */
export const ATTEMPTS = 1_000;

/** The work that an item asks for. */
export interface Job {
  /** Tells it from all others of the run, also from another submission under the same id. */
  readonly item: string;
  readonly workMs: number;
  /** `once`: its first attempt throws. `fatal`: it goes to the dead letters. */
  readonly fails?: "once" | "fatal";
  /** Its handler listens to the signal but does not ask again before each effect, as careless handlers do. */
  readonly careless?: true;
}
