/**
 * Levels that have waited too long. Some grants go out of turn to the one that has waited longest, if that is longer than the patience of those who
 * claim: one for three that went to the most urgent (see `LevelChooser`).
 */
import { STRICT_CHOICES_BETWEEN } from "../../domain/level.ts";
import type { KeyStore } from "./key-store.ts";
import type { Found, Pulls } from "./pulls.ts";

/** So many at once, after what was asked for took long to come: more would keep what is urgent waiting. */
const MOST_OWED = 64;

export interface Turns {
  readonly level: number;
  readonly count: number;
}

export class Patience {
  readonly #store: KeyStore;
  readonly #pulls: Pulls;
  /** Per level: when what is first there was made, as far as this process knows. */
  readonly #seenAt: number[];
  /** Levels of which that is not known yet. */
  readonly #unknown: Set<number>;
  /** Grants that went to the most urgent since. */
  #strict = 0;

  constructor(store: KeyStore, pulls: Pulls) {
    this.#store = store;
    this.#pulls = pulls;
    this.#seenAt = Array.from({ length: store.levels }, () => store.clock.wall());
    // What is most urgent is always asked for.
    this.#unknown = new Set(Array.from(this.#seenAt.keys()).slice(1));
  }

  /** One more has gone to the most urgent. */
  count(): void {
    this.#strict = Math.min(this.#strict + 1, STRICT_CHOICES_BETWEEN * MOST_OWED);
  }

  /** A level was asked. */
  saw(level: number, { newest }: Found): void {
    this.#seenAt[level] = newest === undefined || newest.left === 0 ? this.#store.clock.wall() : newest.at;
    this.#unknown.delete(level);
  }

  /**
   * Who is to have a turn now, for at most so many slots.
   *
   * @param again called when it is known how long a level has waited that this process had not asked
   */
  take(slots: number, patienceMs: number, again: () => void): Turns | undefined {
    if (this.#strict > 0) this.#lookAtUnknown(again);
    const now = this.#store.clock.wall();
    const waited = this.#seenAt.map((at, level) => (level === 0 || this.#pulls.isStanding(level) ? 0 : now - at));
    const longest = Math.max(...waited);
    if (longest <= patienceMs) {
      this.#strict = 0;
      return undefined;
    }
    const count = Math.min(slots, Math.floor(this.#strict / STRICT_CHOICES_BETWEEN));
    this.#strict -= count * STRICT_CHOICES_BETWEEN;
    return count === 0 ? undefined : { level: waited.lastIndexOf(longest), count };
  }

  /**
   * Who comes when less urgent work has waited for long is not the first who is to be patient with it: otherwise processes that live for less
   * than that would never ask for it.
   */
  #lookAtUnknown(again: () => void): void {
    for (const level of this.#unknown) {
      this.#unknown.delete(level);
      if (!this.#pulls.isStanding(level)) void this.#lookAt(level).then(again, () => this.#unknown.add(level));
    }
  }

  async #lookAt(level: number): Promise<void> {
    const before = this.#seenAt[level];
    const { js, subjects, clock } = this.#store;
    const first = await js.next(subjects.stream, subjects.readyAt(level), 1);
    // Unless it was asked meanwhile.
    if (first !== undefined && this.#seenAt[level] === before) this.#seenAt[level] = Math.min(first.at, clock.wall());
  }
}
