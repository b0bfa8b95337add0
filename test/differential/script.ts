import type { Random } from "../simulation/random.ts";

/**
 * A script is data: what is asked of an engine, step by step. It names queues and keys by number, and items and
 * leases by how long ago they came, so that any part of it can be left out and the rest still means something.
 */
export type Step =
  | { readonly do: "submit"; readonly entries: readonly Entry[] }
  | { readonly do: "claim"; readonly queue: number; readonly max: number }
  | { readonly do: "settle"; readonly entries: readonly { readonly lease: number; readonly ending: EndingWish }[] }
  | { readonly do: "renew"; readonly entries: readonly { readonly lease: number; readonly progress?: number }[] }
  | { readonly do: "hold"; readonly queue: number; readonly key: number }
  | { readonly do: "cancel" | "find" | "outcome"; readonly queue: number; readonly item: number }
  | { readonly do: "pause"; readonly queue: number; readonly key?: number; readonly paused: boolean }
  | {
      readonly do: "revive";
      readonly queue: number;
      readonly items?: readonly number[];
      readonly action: "retry" | "drop";
    }
  | {
      readonly do: "keys";
      readonly queue: number;
      readonly after?: number;
      readonly limit: number;
      readonly leased: boolean;
    }
  | { readonly do: "dead"; readonly queue: number; readonly after?: number; readonly limit: number }
  | { readonly do: "queues" };

/** Steps that are asked for at once, without waiting for answers in between. */
export type Burst = readonly Step[];

export interface Entry {
  readonly queue: number;
  readonly key: number;
  /** A number of the script's own choice; undefined: the engine gives one. */
  readonly id?: number;
  readonly level: string;
  readonly mode: "fifo" | "latest" | "strict";
  readonly delayed: boolean;
  readonly keep: boolean;
  readonly keyLimit: number;
  readonly queueLimit: number;
  readonly bytes: boolean;
  readonly headers: boolean;
}

export type EndingWish =
  | { readonly type: "done"; readonly result?: string }
  | { readonly type: "retry"; readonly delayed: boolean; readonly place: "keep" | "yield" }
  | { readonly type: "dead" | "cancelled" | "release" };

export const QUEUES = 2;
export const KEYS = 5;
export const LEVELS = ["high", "normal", "low"] as const;
const IDS = 12;
const NO_LIMIT = 1_000_000;

export function makeScript(random: Random, steps: number): readonly Burst[] {
  const bursts: Burst[] = [];
  for (let count = 0; count < steps;) {
    const size = random.chance(0.6) ? 1 : random.between(2, 6);
    const burst = Array.from({ length: size }, () => makeStep(random));
    // A claim is served with what is ready when its turn is over, so nothing may follow it in the same turn.
    bursts.push([
      ...burst.filter((step) => step.do !== "claim"),
      ...burst.filter((step) => step.do === "claim").slice(0, 1),
    ]);
    count += size;
  }
  return bursts;
}

function makeStep(random: Random): Step {
  const queue = random.chance(0.8) ? 0 : 1;
  const roll = random.between(1, 100);
  if (roll <= 30) return { do: "submit", entries: some(random, 4, () => makeEntry(random, queue)) };
  if (roll <= 48) return { do: "claim", queue, max: random.pick([1, 1, 2, 3, 10]) };
  if (roll <= 68)
    return { do: "settle", entries: some(random, 3, () => ({ lease: recent(random), ending: makeEnding(random) })) };
  if (roll <= 72) return { do: "renew", entries: some(random, 3, () => makeRenewal(random)) };
  if (roll <= 75) return { do: "hold", queue, key: key(random) };
  if (roll <= 80) return { do: "cancel", queue, item: recent(random) };
  if (roll <= 84) return makePause(random, queue);
  if (roll <= 88) return makeRevival(random, queue);
  if (roll <= 92) return { do: "find", queue, item: recent(random) };
  if (roll <= 94) return { do: "outcome", queue, item: recent(random) };
  if (roll <= 97)
    return {
      do: "keys",
      queue,
      leased: random.chance(0.4),
      limit: random.between(1, 6),
      ...maybe(random, "after", key),
    };
  if (roll <= 98) return { do: "dead", queue, limit: random.between(1, 4), ...maybe(random, "after", recent) };
  return { do: "queues" };
}

function makeEntry(random: Random, queue: number): Entry {
  return {
    queue,
    key: key(random),
    ...(random.chance(0.4) ? { id: random.between(1, IDS) } : {}),
    level: random.chance(0.02) ? "unknown" : random.pick(LEVELS),
    mode: random.pick(["fifo", "fifo", "fifo", "latest", "strict"]),
    delayed: random.chance(0.15),
    keep: random.chance(0.6),
    keyLimit: random.chance(0.2) ? random.between(1, 3) : NO_LIMIT,
    queueLimit: random.chance(0.1) ? random.between(1, 8) : NO_LIMIT,
    bytes: random.chance(0.2),
    headers: random.chance(0.2),
  };
}

function makeEnding(random: Random): EndingWish {
  const roll = random.between(1, 10);
  if (roll <= 3) return { type: "done", ...(random.chance(0.5) ? { result: `result ${roll}` } : {}) };
  if (roll <= 6) return { type: "retry", delayed: random.chance(0.4), place: random.pick(["keep", "yield"]) };
  if (roll <= 8) return { type: "dead" };
  return { type: roll === 9 ? "cancelled" : "release" };
}

function makeRenewal(random: Random): { readonly lease: number; readonly progress?: number } {
  return { lease: recent(random), ...(random.chance(0.5) ? { progress: random.between(0, 8) / 8 } : {}) };
}

function makePause(random: Random, queue: number): Step {
  // Paused less often than resumed: otherwise most of a script happens behind closed doors.
  const paused = random.chance(0.4);
  return random.chance(0.3) ? { do: "pause", queue, paused } : { do: "pause", queue, paused, key: key(random) };
}

function makeRevival(random: Random, queue: number): Step {
  const action = random.pick(["retry", "retry", "drop"] as const);
  if (random.chance(0.4)) return { do: "revive", queue, action };
  return { do: "revive", queue, action, items: some(random, 3, () => recent(random)) };
}

function key(random: Random): number {
  return Math.min(random.between(0, KEYS - 1), random.between(0, KEYS - 1));
}

/** The last few matter most; now and then an old one is brought up. */
function recent(random: Random): number {
  return random.chance(0.85) ? random.between(0, 5) : random.between(0, 60);
}

function some<T>(random: Random, most: number, make: () => T): readonly T[] {
  return Array.from({ length: random.chance(0.6) ? 1 : random.between(1, most) }, make);
}

function maybe<K extends string>(
  random: Random,
  name: K,
  make: (random: Random) => number,
): Partial<Record<K, number>> {
  return random.chance(0.4) ? ({ [name]: make(random) } as Partial<Record<K, number>>) : {};
}
