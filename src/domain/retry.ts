import { type Duration, parseDuration } from "./duration.ts";
import { InvalidInput } from "./errors.ts";

export interface RetryOptions {
  /** How often an item is tried in all before it becomes a dead letter. Default 5. */
  readonly attempts?: number;
  /** The back-off before the second attempt; it doubles with each further one. Default 1s. */
  readonly backoff?: Duration;
  /** The longest back-off. Default 5m. */
  readonly maxBackoff?: Duration;
  /**
   * What a failing item does to those behind it on its key. `keep`: it keeps its place and they wait (strict
   * order, the default). `yield`: they may run while it waits out its back-off.
   */
  readonly place?: "keep" | "yield";
}

export interface RetryPolicy {
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly place: "keep" | "yield";
}

export function parseRetry(options: RetryOptions = {}, field = "retry"): RetryPolicy {
  const { attempts = 5, backoff = "1s", maxBackoff = "5m", place = "keep" } = options;
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw new InvalidInput(`${field}.attempts`, attempts, "a whole number, 1 or more");
  }
  if (place !== "keep" && place !== "yield") throw new InvalidInput(`${field}.place`, place, "keep or yield");
  return {
    attempts,
    backoffMs: parseDuration(backoff, `${field}.backoff`),
    maxBackoffMs: parseDuration(maxBackoff, `${field}.maxBackoff`),
    place,
  };
}

/** Exponential back-off with full jitter: anything from zero to the doubled time, so that failures do not come back in step. */
export function backoffMs(policy: RetryPolicy, attempt: number, random: () => number): number {
  const ceiling = Math.min(policy.maxBackoffMs, policy.backoffMs * 2 ** Math.min(attempt - 1, 40));
  return Math.round(random() * ceiling);
}
