/** One direction of a connection: things arrive late, but in the order in which they were sent. */
import type { Clock, Timer } from "../../src/domain/clock.ts";

interface Travelling {
  readonly arrive: () => void;
  readonly timer: Timer;
}

export class Line {
  readonly #clock: Clock;
  #travelling: Travelling[] = [];
  #lastAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  put(delayMs: number, arrive: () => void): void {
    const now = this.#clock.monotonic();
    this.#lastAt = Math.max(this.#lastAt, now + delayMs);
    // Whichever timer comes first brings what was sent first.
    const timer = this.#clock.setTimer(this.#lastAt - now, () => this.#travelling.shift()?.arrive());
    this.#travelling.push({ arrive, timer });
  }

  /** All that is under way is lost. */
  clear(): void {
    for (const { timer } of this.#travelling) timer.cancel();
    this.#travelling = [];
    this.#lastAt = 0;
  }
}
