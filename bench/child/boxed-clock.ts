/** Longer than any subject takes to begin, its slowest poll included. */
const GIVE_UP_MS = 20_000;

export interface WarmUp {
  readonly count: number;
  /** Slow subjects do not get through it: then time ends it. */
  readonly boxMs: number;
}

const COLD: WarmUp = { count: 0, boxMs: 0 };

/**
 * Counts what is handled, in a box of time: idle → warming up, when the first item starts → counting, when the warm-up
 * is over → over, when all were handled or the box ends. Time is looked at on every item too, because a subject that
 * never lets the event loop turn holds up timers.
 */
export class BoxedClock {
  readonly result: Promise<{ readonly handled: number; readonly ms: number }>;
  readonly #settle = Promise.withResolvers<{ readonly handled: number; readonly ms: number }>();
  readonly #count: number;
  readonly #boxMs: number;
  readonly #warmUp: WarmUp;
  #timer: NodeJS.Timeout;
  #warmSince: number | undefined;
  #countingSince: number | undefined;
  #warmed = 0;
  #handled = 0;

  constructor(count: number, boxMs: number, warmUp: WarmUp = COLD) {
    this.#count = count;
    this.#boxMs = boxMs;
    this.#warmUp = warmUp;
    this.result = this.#settle.promise;
    this.#timer = setTimeout(
      () => this.#settle.reject(new Error(`nothing was handled within ${GIVE_UP_MS} ms`)),
      GIVE_UP_MS,
    );
  }

  starts(): void {
    if (this.#warmSince !== undefined) return;
    this.#warmSince = performance.now();
    if (this.#warmUp.count === 0) this.#startCounting();
    else this.#wait(this.#warmUp.boxMs, () => this.#startCounting());
  }

  ends(): void {
    if (this.#countingSince === undefined) {
      this.#warmed += 1;
      const { count, boxMs } = this.#warmUp;
      if (this.#warmed >= count || performance.now() - (this.#warmSince ?? 0) >= boxMs) this.#startCounting();
      return;
    }
    this.#handled += 1;
    if (this.#warmed + this.#handled >= this.#count || performance.now() - this.#countingSince >= this.#boxMs)
      this.#end();
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #startCounting(): void {
    this.#countingSince = performance.now();
    this.#wait(this.#boxMs, () => this.#end());
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#settle.resolve({ handled: this.#handled, ms: performance.now() - (this.#countingSince ?? 0) });
  }

  #wait(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, ms);
  }
}
