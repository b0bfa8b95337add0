import { type Clock, instant, type Instant } from "../domain/clock.ts";
import { type Delay, delaysOf, type LockRecord, type Moment } from "./rules.ts";

/**
 * Tells when delays are over: by the wall clock, which is the only one that processes share. Whoever has watched a delay for
 * its whole length by the monotonic clock need not wait for a wall clock that was ahead when the delay was written.
 */
export class Delays {
  readonly #clock: Clock;
  /** Monotonic, by `until`: when the delay was first seen. */
  readonly #firstSeen = new Map<number, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Stands still, so that whoever decides by it can wait for exactly what it found not to be over. */
  now(): FrozenMoment {
    return new FrozenMoment(instant(this.#clock), this.#firstSeen);
  }
}

export class FrozenMoment implements Moment {
  readonly #now: Instant;
  readonly #firstSeen: Map<number, number>;

  constructor(now: Instant, firstSeen: Map<number, number>) {
    this.#now = now;
    this.#firstSeen = firstSeen;
  }

  get wall(): number {
    return this.#now.wall;
  }

  isOver(delay: Delay): boolean {
    return this.#leftMs(delay) <= 0;
  }

  /** From this moment until the next of the record's delays is over. */
  nextMs(record: LockRecord | undefined): number {
    const left = delaysOf(record).map((delay) => this.#leftMs(delay));
    return Math.min(Infinity, ...left.filter((ms) => ms > 0));
  }

  #leftMs({ until, ms }: Delay): number {
    const { wall, monotonic } = this.#now;
    const firstSeen = this.#firstSeen.get(until) ?? monotonic;
    this.#firstSeen.set(until, firstSeen);
    return Math.min(until - wall, firstSeen + ms - monotonic);
  }
}

/** The moment for those who decide once. */
export function momentOf(clock: Clock): Moment {
  return new Delays(clock).now();
}
