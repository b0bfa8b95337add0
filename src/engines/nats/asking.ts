/** Asks the consumers for ready keys, level by level, and out of turn for a level that has waited too long. */
import type { Clock } from "../../domain/clock.ts";
import type { Forgotten } from "./forgotten.ts";
import type { GoingBack } from "./going-back.ts";
import type { KeyStore } from "./key-store.ts";
import type { Lag } from "./lag.ts";
import type { Pulls } from "./pulls.ts";
import type { Turns } from "./turns.ts";

export interface AskingParts {
  readonly store: KeyStore;
  readonly pulls: Pulls;
  /** Leaves a pull at the server for those who wait. */
  readonly stand: (level: number) => void;
  readonly lag: Lag;
  readonly turns: Turns;
  readonly goingBack: GoingBack;
  readonly forgotten: Forgotten;
  /** Something failed. */
  readonly rest: () => void;
  /** An ask is over. */
  readonly stir: () => void;
}

export class Asking {
  readonly #parts: AskingParts;
  readonly #clock: Clock;
  /** Per level: when what is first there was made, as far as this process knows. */
  readonly #seenAt: number[];
  /** Levels of which that is not known yet. */
  readonly #unknown: Set<number>;
  /** Per level: messages that were asked for and have not come yet. */
  readonly #asked: number[];
  /** Levels that are being asked out of turn. */
  readonly #impatient = new Set<number>();
  /** Per level: how often it is being asked, or looked at. */
  readonly #asking: number[];

  constructor(parts: AskingParts) {
    const { store } = parts;
    this.#parts = parts;
    this.#clock = store.clock;
    this.#seenAt = Array.from({ length: store.levels }, () => this.#clock.wall());
    this.#unknown = new Set(this.#seenAt.keys());
    this.#asked = this.#seenAt.map(() => 0);
    this.#asking = this.#seenAt.map(() => 0);
  }

  /** Messages that have not come yet. */
  get asked(): number {
    let asked = 0;
    for (const count of this.#asked) asked += count;
    return asked;
  }

  /** Those of levels that have waited too long. */
  get askedOutOfTurn(): number {
    let asked = 0;
    for (const level of this.#impatient) asked += this.#asked[level] ?? 0;
    return asked;
  }

  get isAnyOutOfTurn(): boolean {
    return this.#impatient.size > 0;
  }

  isOutOfTurn(level: number): boolean {
    return this.#impatient.has(level);
  }

  /** How often a level is being asked, or looked at. */
  countAt(level: number): number {
    return this.#asking[level] ?? 0;
  }

  /** A pull brought something. */
  arrived(level: number): void {
    if ((this.#asked[level] ?? 0) > 0) this.#asked[level] = (this.#asked[level] ?? 0) - 1;
  }

  /** @param isGiving something is about to be given out: its handler begins first, and the ask still goes out in the same turn */
  async ask(level: number, want: number, isGiving = false): Promise<void> {
    const count = (counts: number[], more: number): number =>
      (counts[level] = Math.max(0, (counts[level] ?? 0) + more));
    const { pulls, stand, lag, goingBack, rest, stir } = this.#parts;
    let missing = want;
    count(this.#asking, 1);
    count(this.#asked, want);
    try {
      if (isGiving) await new Promise<void>((resolve) => process.nextTick(resolve));
      // The server works off pulls and what is given back apart: what is behind it would overtake what is not back yet.
      if (goingBack.size > 0) await goingBack.all();
      const { found, newest } = await pulls.quick(level, want);
      this.#seenAt[level] = newest === undefined || newest.left === 0 ? this.#clock.wall() : newest.at;
      this.#unknown.delete(level);
      count(this.#asked, found - want);
      missing = 0;
      if (newest === undefined) this.#parts.forgotten.look(level);
      if (found >= want || (await lag.wasBehind(level, newest?.sequence))) return;
      // What comes for another ask would be taken for what comes for this one.
      if ((this.#asking[level] ?? 0) === 1) stand(level);
    } catch {
      rest();
    } finally {
      count(this.#asked, -missing);
      if (count(this.#asking, -1) === 0) this.#asked[level] = 0;
      this.#impatient.delete(level);
      stir();
    }
  }

  /** Some grants go out of turn to the level that has waited longest, if that is longer than its patience. */
  askOutOfTurn(lack: number, patienceMs: number): void {
    const { pulls, turns: owed } = this.#parts;
    if (owed.areAny) this.#lookAtUnknown();
    const now = this.#clock.wall();
    const waited = this.#seenAt.map((at, level) => (pulls.isStanding(level) ? 0 : now - at));
    const longest = Math.max(...waited.slice(1));
    if (longest <= patienceMs) {
      owed.forget();
      return;
    }
    const level = waited.lastIndexOf(longest);
    const turns = (this.#asking[level] ?? 0) > 0 ? 0 : owed.take(lack);
    if (turns === 0) return;
    this.#impatient.add(level);
    void this.ask(level, turns);
  }

  /**
   * Who comes when less urgent work has waited for long is not the first who is to be patient with it: otherwise processes that live for less
   * than that would never ask for it.
   */
  #lookAtUnknown(): void {
    for (const level of this.#unknown) {
      this.#unknown.delete(level);
      // What is most urgent is always asked for, and what is being asked for will be known.
      if (level > 0 && this.countAt(level) === 0 && !this.#parts.pulls.isStanding(level)) void this.#lookAt(level);
    }
  }

  async #lookAt(level: number): Promise<void> {
    const { store, stir } = this.#parts;
    const before = this.#seenAt[level];
    try {
      const { js, subjects } = store;
      const first = await js.next(subjects.stream, subjects.readyAt(level), 1);
      // Unless it was asked meanwhile.
      if (first === undefined || this.#seenAt[level] !== before) return;
      this.#seenAt[level] = Math.min(first.at, this.#clock.wall());
      stir();
    } catch {
      this.#unknown.add(level);
    }
  }
}
