/** How long the server takes for a write while many wait, and whether that is so long that it syncs each of them. */
import type { Clock } from "../../domain/clock.ts";

/** Fewer do not show how quick it is. */
const MANY = 16;
/** Replies come in bursts, so they are counted over at least so long; and so many such times in a row have to be slow, because a machine may stand still. */
const TIMED_MS = 25;
const IN_A_ROW = 3;
/** It is not looked at the clock for each. */
const EACH = 16;
/** Three times what a server takes that does not sync, and half of what one takes that does. */
const SLOW_MS = 0.1;
/** So long it is taken to be slow; and not to be, when batches were no quicker. */
const BELIEVED_MS = 10_000;
const NO_USE_MS = 60_000;
/** Batches before it is judged whether they are quicker. */
const JUDGED_AFTER = 8;

export class Pace {
  readonly #clock: Clock;
  readonly #always: boolean;
  #slowUntil = -Infinity;
  #triedUntil = -Infinity;
  #waiting = 0;
  #heard = 0;
  #since = 0;
  #slowTimes = 0;
  /** Of a write apart, when it was last slow. */
  #apartMs = 0;
  #batches = 0;
  #batchMs = 0;
  #batched = 0;

  constructor(clock: Clock, always: boolean) {
    this.#clock = clock;
    this.#always = always;
  }

  get isSlow(): boolean {
    return this.#always || (this.#slowUntil !== -Infinity && this.#clock.monotonic() < this.#slowUntil);
  }

  sent(): void {
    this.#waiting += 1;
  }

  heard(): void {
    this.#waiting -= 1;
    if (this.#waiting < MANY) {
      this.#heard = 0;
      return;
    }
    if (this.#heard === 0) this.#since = this.#clock.monotonic();
    this.#heard += 1;
    if (this.#heard % EACH !== 0) return;
    const ms = this.#clock.monotonic() - this.#since;
    if (ms < TIMED_MS) return;
    this.#time(ms / this.#heard);
    this.#heard = 0;
  }

  begin(): number {
    return this.#clock.monotonic();
  }

  end(began: number, count: number): void {
    this.#batches += 1;
    this.#batchMs += this.#clock.monotonic() - began;
    this.#batched += count;
    if (this.#batches < JUDGED_AFTER) return;
    const now = this.#clock.monotonic();
    if (this.#batchMs / this.#batched >= this.#apartMs) {
      this.#slowUntil = -Infinity;
      this.#triedUntil = now + NO_USE_MS;
    }
    this.#batches = this.#batchMs = this.#batched = 0;
  }

  #time(ms: number): void {
    this.#slowTimes = ms > SLOW_MS ? this.#slowTimes + 1 : 0;
    if (this.#slowTimes < IN_A_ROW) return;
    this.#slowTimes = 0;
    const now = this.#clock.monotonic();
    if (now < this.#triedUntil) return;
    this.#apartMs = ms;
    this.#slowUntil = now + BELIEVED_MS;
  }
}
