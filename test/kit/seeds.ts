/**
 * Which seeds a random test plays. It begins at a number drawn anew in each run, so that runs add up, and prints it with
 * how many seeds it really played.
 *
 *     BATON_SEED=17                 begins at 17
 *     BATON_SEED=17 BATON_SEEDS=1   plays that one alone: so a failure is played again
 *     BATON_SOAK_MINUTES=5          goes on for five minutes: what `npm run test:soak` sets
 */
import { randomInt } from "node:crypto";
import { performance } from "node:perf_hooks";
import type { TestContext } from "node:test";

export interface SeedBounds {
  /** Of one run of the test command. */
  readonly seeds: number;
  /** A slow or busy machine plays fewer seeds in this time. */
  readonly longestMs: number;
}

/** How a line begins that tells how many seeds were played. `scripts/soak.ts` looks for it. */
export const PLAYED = "played ";

const HIGHEST_START = 2_000_000_000;

export class Seeds implements Iterable<number> {
  /** The first one. */
  readonly from: number;
  /** So many at most. Infinity when the time alone decides. */
  readonly count: number;
  readonly #longestMs: number;
  readonly #begunAt = performance.now();
  #drawn = 0;
  #stopped = false;

  constructor({ seeds, longestMs }: SeedBounds, environment: NodeJS.ProcessEnv = process.env) {
    const soakMs = Number(environment["BATON_SOAK_MINUTES"] ?? 0) * 60_000;
    const asked = environment["BATON_SEEDS"];
    this.from = Number(environment["BATON_SEED"] ?? randomInt(1, HIGHEST_START));
    this.count = asked !== undefined ? Number(asked) : soakMs > 0 ? Infinity : seeds;
    this.#longestMs = Math.max(longestMs, soakMs);
  }

  /** There is time for more. One seed is always played. */
  readonly goOn = (): boolean => !this.#stopped && this.elapsedMs < this.#longestMs;

  /** One failed: the others would only say it again. */
  stop(): void {
    this.#stopped = true;
  }

  get elapsedMs(): number {
    return performance.now() - this.#begunAt;
  }

  *[Symbol.iterator](): Iterator<number> {
    while (this.#drawn < this.count && (this.#drawn === 0 || this.goOn())) {
      this.#drawn += 1;
      yield this.from + this.#drawn - 1;
    }
  }

  /** Says what was played, for people and for `scripts/soak.ts`. Without a number: the seeds that were iterated over. */
  tell(context: TestContext, what: string, played: number = this.#drawn): void {
    const seconds = (this.elapsedMs / 1_000).toFixed(1);
    context.diagnostic(`${PLAYED}${played} seeds of ${what} from BATON_SEED=${this.from} on, in ${seconds} s`);
  }
}

/** Names the variables that play one seed of a test again. */
export function again(seed: number): string {
  return `BATON_SEED=${seed} BATON_SEEDS=1 plays it again`;
}

/** How long a test may take that draws its own seeds: the usual bound, and the whole soak when there is one. */
export function seedTimeoutMs(usualMs: number, environment: NodeJS.ProcessEnv = process.env): number {
  return usualMs + Number(environment["BATON_SOAK_MINUTES"] ?? 0) * 60_000;
}
