/** How long the server takes for a write while many wait, and whether that is so long that it syncs each of them. */
import type { Clock } from "../../domain/clock.ts";

/** Fewer do not show how quick it is. */
const MANY = 16;
/**
 * Replies come in bursts, and this process may take as long for a burst as the server: so they are counted over at least so long, and until as many came as
 * wait. So many such times in a row have to be slow, because a machine may stand still.
 */
const TIMED_MS = 25;
const MOST_TIMED = 1_000;
const IN_A_ROW = 2;
/** Later than this after the one before is not in a row. */
const ROW_MS = 2_000;
/** It is not looked at the clock for each. */
const EACH = 16;
/** Three times what a server takes that does not sync, and half of what one takes that does. */
const SLOW_MS = 0.1;
/** So long it is believed to be slow. */
const BELIEVED_MS = 10_000;
/** So many batches tell whether they are quicker; if not, there are none for so long. */
const JUDGED_AFTER = 8;
const LEFT_ALONE_MS = 60_000;

export class Pace {
  readonly #clock: Clock;
  readonly #always: boolean;
  #slowUntil = -Infinity;
  #leftAloneUntil = -Infinity;
  /** Writes that went apart and are not answered. */
  #waiting = 0;
  #heard = 0;
  #since = 0;
  #slowTimes = 0;
  #slowAt = -Infinity;
  /** Of a write apart, when it was last slow. */
  #apartMs = 0;
  #batches = 0;
  #batchMs = 0;
  #batched = 0;

  /** @param always it is slow, whatever is measured */
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
    if (this.#heard % EACH !== 0 || this.#heard < Math.min(this.#waiting, MOST_TIMED)) return;
    const ms = this.#clock.monotonic() - this.#since;
    if (ms < TIMED_MS) return;
    this.#time(ms / this.#heard);
    this.#heard = 0;
  }

  /** A batch begins. Undefined: what is still on its way apart would be counted with it. */
  begin(): number | undefined {
    return this.#waiting > 0 ? undefined : this.#clock.monotonic();
  }

  /** @param count how many it has stored */
  end(began: number | undefined, count: number): void {
    if (began === undefined) return;
    const now = this.#clock.monotonic();
    this.#batches += 1;
    this.#batchMs += now - began;
    this.#batched += count;
    if (this.#batches < JUDGED_AFTER) return;
    if (this.#batched === 0 || this.#batchMs / this.#batched >= this.#apartMs) {
      this.#slowUntil = -Infinity;
      this.#leftAloneUntil = now + LEFT_ALONE_MS;
    }
    this.#batches = this.#batchMs = this.#batched = 0;
  }

  #time(ms: number): void {
    const now = this.#clock.monotonic();
    this.#slowTimes = ms <= SLOW_MS ? 0 : now - this.#slowAt < ROW_MS ? this.#slowTimes + 1 : 1;
    this.#slowAt = now;
    if (this.#slowTimes < IN_A_ROW || now < this.#leftAloneUntil) return;
    this.#slowTimes = 0;
    this.#apartMs = ms;
    this.#slowUntil = now + BELIEVED_MS;
  }
}
