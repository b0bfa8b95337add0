/**
 * How many times better one subject is than another. The ratio is taken round by round, of two measurements that were
 * made within moments of each other, and only then summed up: a slow minute of the machine meets both sides alike.
 */
import type { Metric } from "../workload.ts";
import { quantile, spreadOf, type Summary, summarize } from "./statistics.ts";

/** Below this, two figures are a tie: clean runs of one configuration differ by 1.2 × in the median, 1.7 × at worst. */
export const TIE = 1.5;
/** Unless it comes again: so many rounds, all in the same direction, each by at least so much. */
export const REPEATED = { rounds: 3, by: 1.15 };

export const TIE_RULE: string =
  `A difference under ${TIE} × either way is a tie (≈), unless each of at least ${REPEATED.rounds} rounds shows it in the same ` +
  `direction by ${REPEATED.by} × or more; and whatever its size, it is a tie when rounds disagree about who is better.`;

/** By round; what was measured several times in a round has a name for each. */
export type Rounds = ReadonlyMap<string, number>;

/** Above 1 `own` is better. Undefined: there is no round that has both. */
export function ratioOf(own: Rounds, other: Rounds, better: Metric["better"]): Summary | undefined {
  const ratios = Array.from(own, ([round, value]) => {
    const theirs = other.get(round);
    if (theirs === undefined) return Number.NaN;
    return better === "higher" ? value / theirs : theirs / value;
  }).filter((ratio) => !Number.isNaN(ratio));
  return ratios.length === 0 ? undefined : summarize(ratios);
}

export function isTie({ median, low, high, count }: Summary): boolean {
  if (low < 1 && high > 1) return true;
  if (median >= TIE || median <= 1 / TIE) return false;
  return count < REPEATED.rounds || (low < REPEATED.by && high > 1 / REPEATED.by);
}

/** How far the rounds of a ratio lie from their median. */
export interface StatedSpread {
  readonly usual: number;
  readonly nineOfTen: number;
  readonly worst: number;
  /** How many ratios it is taken from. */
  readonly count: number;
}

/** Undefined: nothing was measured twice. */
export function statedSpread(ratios: readonly Summary[]): StatedSpread | undefined {
  const spreads = ratios
    .filter(({ count, low }) => count > 1 && low > 0)
    .map(spreadOf)
    .filter(Number.isFinite);
  if (spreads.length === 0) return undefined;
  return {
    usual: quantile(spreads, 0.5),
    nineOfTen: quantile(spreads, 0.9),
    worst: Math.max(...spreads),
    count: spreads.length,
  };
}
