/**
 * How long an answer may have waited for this process. A process that is stopped, or a machine that sleeps, finds the
 * answer of its open poll when it goes on, and in it a message whose time may be over: the queue has counted from when
 * it gave the message away.
 *
 * While a request is open, a timer notes that this process runs. An answer that is found cannot be older than the last
 * note but one, or, for a while after a standstill, than what was noted before that.
 */
import { type Clock, elapsedMs, type Instant, instant, systemClock, type Timer } from "../../../domain/clock.ts";

/** So often is noted that the process runs. */
const NOTE_MS = 250;
/** Notes that are so far apart had a standstill between them; a busy event loop is late by less. */
const STANDSTILL_MS = 1_000;
/** So long after a standstill, everything that came in it has been read. */
const CATCH_UP_MS = 5_000;

export class SignsOfLife implements Disposable {
  readonly #clock: Clock;
  #last: Instant;
  #beforeLast: Instant;
  /** When the process went on, and what was noted before it stood still. */
  #standstill: { readonly over: Instant; readonly before: Instant } | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#last = instant(clock);
    this.#beforeLast = this.#last;
    this.#noteLater();
  }

  /** What is found now came after this moment. */
  answeredSince(): Instant {
    // The answer may be read before the timer has had its turn.
    this.#lookForStandstill(instant(this.#clock));
    const standstill = this.#standstill;
    const isCatchingUp = standstill !== undefined && elapsedMs(this.#clock, standstill.over) < CATCH_UP_MS;
    return isCatchingUp ? standstill.before : this.#beforeLast;
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
  }

  #noteLater(): void {
    this.#timer = this.#clock.setTimer(NOTE_MS, () => {
      const now = instant(this.#clock);
      this.#lookForStandstill(now);
      this.#beforeLast = this.#last;
      this.#last = now;
      this.#noteLater();
    });
  }

  #lookForStandstill(now: Instant): void {
    if (elapsedMs(this.#clock, this.#last) >= STANDSTILL_MS) this.#standstill = { over: now, before: this.#last };
  }
}
