import type { Clock, Timer } from "../../src/domain/clock.ts";

/** One timer for whatever is due next; setting it for a later moment than it is set for changes nothing. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: Timer | undefined;
  #at = Infinity;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** By the monotonic clock. */
  noLaterThan(at: number): void {
    if (at >= this.#at) return;
    this.cancel();
    this.#at = at;
    this.#timer = this.#clock.setTimer(at - this.#clock.monotonic(), () => {
      this.#at = Infinity;
      this.#timer = undefined;
      this.#ring();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#at = Infinity;
  }
}
