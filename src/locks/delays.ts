import type { Clock } from "../domain/clock.ts";
import { type Delay, delaysOf, type LockRecord, type Moment } from "./rules.ts";

/**
 * Tells when delays are over: by the wall clock, which is the only one that processes share. Whoever has watched a delay for
 * its whole length by the monotonic clock need not wait for a wall clock that was ahead when the delay was written.
 */
export class Delays implements Moment {
  readonly #clock: Clock;
  /** Monotonic, by `until`: when the delay was first seen. */
  readonly #firstSeen = new Map<number, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get wall(): number {
    return this.#clock.wall();
  }

  isOver(delay: Delay): boolean {
    return this.#leftMs(delay) <= 0;
  }

  /** Until the next of the record's delays is over. */
  nextMs(record: LockRecord | undefined): number {
    const left = delaysOf(record).map((delay) => this.#leftMs(delay));
    return Math.min(Infinity, ...left.filter((ms) => ms > 0));
  }

  #leftMs({ until, ms }: Delay): number {
    const now = this.#clock.monotonic();
    const firstSeen = this.#firstSeen.get(until) ?? now;
    this.#firstSeen.set(until, firstSeen);
    return Math.min(until - this.#clock.wall(), firstSeen + ms - now);
  }
}
