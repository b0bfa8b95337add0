/** A worker that asks again so soon is quick: what comes for it meanwhile is worth keeping for so long. */
export const QUICK_MS = 20;
/** After so many keys in a row, each at once: for fewer it is not worth it, and what is given back loses its place. */
export const LONG_RUN = 128;
/** No more than it works off in so long: others could have had them meanwhile. */
const WORTH_MS = 10;
/** More would only stand in line before the server. */
const MOST_AHEAD = 64;

/**
 * How many keys are started for a worker before it asks for them: while it has to wait although it is quick, twice as many as before; fewer
 * when it did not come for them. The way of a key to its worker takes milliseconds, most of it in lines before others; only so are all
 * parts of the way at work at the same time.
 */
export class Ahead {
  readonly #isWanted: boolean;
  #depth = 0;
  #run = 0;

  /** @param isWanted whether keys are started for it ahead at all */
  constructor(isWanted: boolean) {
    this.#isWanted = isWanted;
  }

  /** Keys that it took without a rest. */
  get run(): number {
    return this.#run;
  }

  get depth(): number {
    return this.#depth;
  }

  /** The worker asks again, so long after it was given so many keys that had been fetched. The others went on by themselves. */
  ask(fetched: number, restMs: number, hasToWait: boolean): void {
    this.#run = restMs >= QUICK_MS ? 0 : this.#run + fetched;
    if (fetched === 0 || this.#run < LONG_RUN || !this.#isWanted) {
      this.#depth = 0;
      return;
    }
    const most = Math.max(fetched, Math.floor((fetched * WORTH_MS) / Math.max(restMs, 0.1)));
    const depth = hasToWait ? Math.max(fetched, this.#depth * 2) : this.#depth;
    this.#depth = Math.min(depth, most, MOST_AHEAD);
  }

  /** Some were not asked for in time. */
  wasTooMany(): void {
    this.#depth = Math.floor(this.#depth / 2);
  }

  end(): void {
    this.#depth = 0;
    this.#run = 0;
  }
}
