import type { Clock } from "../domain/clock.ts";

/** Wakes one who waits. A ring while nobody listens is kept for the next who does. */
export class Bell {
  readonly #clock: Clock;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly ring = (): void => {
    this.#rung = true;
    this.#wake?.();
  };

  /** Until it rings, or the time is over. */
  async next(withinMs: number): Promise<void> {
    if (!this.#rung) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = withinMs === Infinity ? undefined : this.#clock.setTimer(withinMs, resolve);
      await promise;
      timer?.cancel();
      this.#wake = undefined;
    }
    this.#rung = false;
  }
}
