/**
 * What several handles ask of one queue at once: rounds of calls that are made together, with quiet in between, in which
 * what the store says can be held against the history. Data, so that any part of it can be left out.
 */
import type { Random } from "../../../kit/random.ts";

export interface Plan {
  readonly handles: number;
  /** One of them is behind a way that loses replies. */
  readonly isLossy: boolean;
  /** The same for all submissions: only so a limit can be held against what is there. */
  readonly keyLimit: number;
  readonly queueLimit: number;
  readonly rounds: readonly Round[];
}

export type Round = readonly Call[];

export type Call = { readonly by: number } & Asked;

type Asked =
  | { readonly do: "submit"; readonly wishes: readonly Wish[] }
  | {
      readonly do: "claim";
      readonly worker: number;
      readonly max: number;
      readonly short: boolean;
      /** The most items of a run, where there are runs. */
      readonly items?: number;
    }
  | { readonly do: "hold"; readonly key: number }
  | { readonly do: "settle"; readonly endings: readonly EndingWish[] }
  | { readonly do: "renew"; readonly renewals: readonly RenewalWish[] }
  | { readonly do: "cancel"; readonly item: number }
  | { readonly do: "pause"; readonly key?: number; readonly paused: boolean }
  | { readonly do: "revive"; readonly action: "retry" | "drop" }
  /** Leases and delays that are short run out. */
  | { readonly do: "wait" }
  /** The replies that are on their way to the handle behind the lossy way are lost. */
  | { readonly do: "lose" };

export interface Wish {
  readonly key: number;
  readonly id?: number;
  readonly level: number;
  readonly mode: "fifo" | "latest" | "strict";
  readonly delayed: boolean;
  readonly kept: boolean;
}

export interface RenewalWish {
  /** So many leases ago. */
  readonly lease: number;
  /** So many items of its run have ended, of those before its last. */
  readonly ended?: number;
}

export interface EndingWish extends RenewalWish {
  readonly type: "done" | "retry" | "yield" | "dead" | "cancelled" | "release";
  readonly delayed: boolean;
}

export const LEVELS: readonly string[] = ["high", "normal", "low"];
const NO_LIMIT = 1_000_000;
const HANDLES = 3;
const MOST_KEYS = 8;

export function makePlan(random: Random, isLossy: boolean, rounds: number, runs: boolean): Plan {
  const keys = random.pick([1, 2, 4, MOST_KEYS]);
  const ids = random.pick([2, 6, 20]);
  const limits = random.chance(0.5);
  const key = (): number => random.between(0, keys - 1);
  const recent = (): number => (random.chance(0.8) ? random.between(0, 4) : random.between(0, 20));
  const several = <T>(most: number, make: () => T): readonly T[] =>
    Array.from({ length: random.between(1, most) }, make);
  const items = (): { readonly items?: number } => (runs ? { items: random.pick([1, 2, 5, 64]) } : {});
  const endedIf = (chance: number): { readonly ended?: number } =>
    runs && random.chance(chance) ? { ended: random.pick([0, 1, 1, 2, 64]) } : {};
  // The same thing many times at once, or many things at once.
  const theme = (): Call["do"] =>
    random.pick([
      "submit",
      "submit",
      "submit",
      "claim",
      "claim",
      "settle",
      "settle",
      "cancel",
      "hold",
      "revive",
      "renew",
    ]);

  const makeWish = (id: number | undefined): Wish => ({
    key: key(),
    ...(id === undefined ? {} : { id }),
    level: random.between(0, LEVELS.length - 1),
    mode: random.pick(["fifo", "fifo", "fifo", "fifo", "strict", "latest"]),
    delayed: random.chance(0.15),
    kept: id !== undefined || random.chance(0.4),
  });
  const makeAsked = (kind: Call["do"], common: number | undefined): Asked => {
    switch (kind) {
      case "submit":
        return {
          do: "submit",
          wishes: several(4, () => makeWish(common ?? (random.chance(0.5) ? random.between(1, ids) : undefined))),
        };
      case "claim":
        return {
          do: "claim",
          worker: random.between(0, 3),
          max: random.pick([1, 2, 5]),
          short: isLossy || random.chance(0.3),
          ...(random.chance(0.1) ? {} : items()),
        };
      case "hold":
        return { do: "hold", key: key() };
      case "settle":
        return {
          do: "settle",
          endings: several(4, () => ({
            lease: recent(),
            type: random.pick(["done", "done", "done", "retry", "yield", "dead", "cancelled", "release"]),
            delayed: random.chance(0.3),
            ...endedIf(0.6),
          })),
        };
      case "renew":
        return { do: "renew", renewals: several(3, () => ({ lease: recent(), ...endedIf(0.5) })) };
      case "cancel":
        return { do: "cancel", item: recent() };
      case "revive":
        return { do: "revive", action: random.pick(["retry", "drop"]) };
      case "pause": {
        const paused = random.chance(0.3);
        return random.chance(0.5) ? { do: "pause", paused } : { do: "pause", paused, key: key() };
      }
      case "wait":
      case "lose":
        return { do: kind };
    }
  };
  // Ids that nobody has used before, each by several handles at once, on whatever keys.
  let fresh = 100;
  let last: Call["do"] | undefined;
  const makeRace = (): Round => {
    const some = Array.from({ length: random.between(2, 6) }, () => (fresh += 1));
    const mode = random.pick(["fifo", "fifo", "latest", "strict"] as const);
    return Array.from({ length: random.between(6, 9) }, (_, index) => ({
      by: index % HANDLES,
      do: "submit",
      wishes: some.map((id) => Object.assign(makeWish(id), { mode, key: random.between(0, MOST_KEYS - 1) })),
    }));
  };
  const makeRound = (number: number): Round => {
    if (number === 0 || (number % 5 !== 4 && random.chance(0.3))) return makeRace();
    if (number % 5 === 4) return [{ do: "wait", by: 0 }];
    // What was just given out is settled, cancelled and renewed at once.
    const kind = last === "claim" ? random.pick(["settle", "settle", "cancel", "renew"] as const) : theme();
    last = kind;
    const isAlike = random.chance(0.5);
    const common = kind === "submit" && random.chance(0.4) ? random.between(1, ids) : undefined;
    const calls = Array.from({ length: random.between(2, 7) }, (): Call => ({
      by: random.between(0, HANDLES - 1),
      ...makeAsked(isAlike ? kind : random.pick([kind, theme()]), common),
    }));
    if (random.chance(0.15)) calls.push({ by: 0, ...makeAsked("pause", undefined) });
    if (isLossy && random.chance(0.3)) calls.push({ by: HANDLES - 1, do: "lose" });
    return calls;
  };
  return {
    handles: HANDLES,
    isLossy,
    keyLimit: limits ? random.between(1, 4) : NO_LIMIT,
    queueLimit: limits ? random.between(2, 10) : NO_LIMIT,
    rounds: Array.from({ length: rounds }, (_, number) => makeRound(number)),
  };
}
