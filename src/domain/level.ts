import { InvalidInput } from "./errors.ts";
import { checkLevelName } from "./names.ts";

/** Levels are names, most urgent first, because numbers mean opposite things in different products. */
export const DEFAULT_LEVELS: readonly string[] = ["high", "normal", "low"];

/** Each level costs a look at every claim, and on NATS a consumer. */
const MOST_LEVELS = 16;

/** After this many choices that were strict, one may go to a level that has waited too long. */
export const STRICT_CHOICES_BETWEEN = 3;

export function checkLevels(levels: readonly string[], field = "levels"): readonly string[] {
  const isList: boolean = Array.isArray(levels);
  if (!isList || levels.length === 0 || levels.length > MOST_LEVELS) {
    throw new InvalidInput(field, levels, `1 to ${MOST_LEVELS} names, most urgent first`);
  }
  for (const [index, level] of levels.entries()) checkLevelName(level, `${field}[${index}]`);
  if (new Set(levels).size !== levels.length)
    throw new InvalidInput(field, levels, "names that differ from one another");
  return [...levels];
}

/** The level in the middle, or the more urgent of two: `normal` of high, normal, low. */
export function defaultLevel(levels: readonly string[]): string {
  const level = levels[Math.floor((levels.length - 1) / 2)];
  if (level === undefined) throw new InvalidInput("levels", levels, "at least one name");
  return level;
}

/**
 * Which level goes first, when several have ready keys: the most urgent one, except that a level whose
 * oldest ready key has waited longer than `patienceMs` gets one choice in four. So urgent work keeps
 * three quarters of the capacity, and less urgent work cannot starve.
 */
export class LevelChooser {
  #strictChoices = 0;

  /**
   * @param waitedMs per level, most urgent first: how long its oldest ready key has waited; undefined if none is ready
   * @returns the index of the level to take from, or undefined if none has a ready key
   */
  choose(waitedMs: readonly (number | undefined)[], patienceMs: number): number | undefined {
    const mostUrgent = waitedMs.findIndex((waited) => waited !== undefined);
    if (mostUrgent === -1) return undefined;
    const impatient = longestBeyond(waitedMs, mostUrgent + 1, patienceMs);
    if (impatient === undefined) {
      this.#strictChoices = STRICT_CHOICES_BETWEEN;
      return mostUrgent;
    }
    if (this.#strictChoices > 0) {
      this.#strictChoices -= 1;
      return mostUrgent;
    }
    this.#strictChoices = STRICT_CHOICES_BETWEEN;
    return impatient;
  }
}

function longestBeyond(
  waitedMs: readonly (number | undefined)[],
  from: number,
  patienceMs: number,
): number | undefined {
  let found: number | undefined;
  let longest = patienceMs;
  for (let index = from; index < waitedMs.length; index += 1) {
    const waited = waitedMs[index];
    if (waited !== undefined && waited > longest) {
      longest = waited;
      found = index;
    }
  }
  return found;
}

/** The same levels in the same order. */
export function areSame(levels: readonly string[], others: readonly string[]): boolean {
  return levels.length === others.length && levels.every((name, index) => name === others[index]);
}
