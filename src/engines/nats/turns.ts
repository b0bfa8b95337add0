import { STRICT_CHOICES_BETWEEN } from "../../domain/level.ts";

/** So many at once, after what was asked for took long to come: more would keep what is urgent waiting. */
const MOST_OWED = 64;

/**
 * The turns of a level that has waited too long: one for three that went to the most urgent (see `LevelChooser`). They are counted when
 * something is given out, not when something is asked for: asking takes time, and what was started ahead is given out meanwhile.
 */
export class Turns {
  #strict = 0;

  /** One more has gone to the most urgent. */
  count(): void {
    this.#strict = Math.min(this.#strict + 1, STRICT_CHOICES_BETWEEN * MOST_OWED);
  }

  /** Something has gone to the most urgent since somebody was known to have waited too long. */
  get areAny(): boolean {
    return this.#strict > 0;
  }

  /** How many are owed, and taken now. */
  take(most: number): number {
    const turns = Math.min(most, Math.floor(this.#strict / STRICT_CHOICES_BETWEEN));
    this.#strict -= turns * STRICT_CHOICES_BETWEEN;
    return turns;
  }

  /** Nobody has waited too long. */
  forget(): void {
    this.#strict = 0;
  }
}
