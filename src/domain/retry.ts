import { type Duration, parseDuration } from "./duration.ts";
import { InvalidInput } from "./errors.ts";
import { checkOptions, type OptionNames } from "./options.ts";

const DEFAULT_BACKOFF_MS = 1_000;
const DEFAULT_MAX_BACKOFF_MS = 300_000;

export interface RetryOptions {
  /** How often an item is tried in all before it becomes a dead letter. Default 5. */
  readonly attempts?: number | undefined;
  /** The longest wait before the second attempt; it doubles with each further one. Default 1s, or `maxBackoff` if that is less. */
  readonly backoff?: Duration | undefined;
  /** The longest wait before any attempt. Default 5m, or `backoff` if that is more. */
  readonly maxBackoff?: Duration | undefined;
  /** The wait before each attempt, always the same: instead of a back-off. */
  readonly delay?: Duration | undefined;
  /**
   * What a failing item does to those behind it on its key. `keep`: it keeps its place and they wait (strict
   * order, the default). `yield`: they may run while it waits out its back-off.
   */
  readonly place?: "keep" | "yield" | undefined;
}

const RETRY_OPTIONS: OptionNames<RetryOptions> = {
  attempts: true,
  backoff: true,
  maxBackoff: true,
  delay: true,
  place: true,
};

export interface RetryPolicy {
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  /** Always the same, instead of a back-off. */
  readonly delayMs?: number;
  readonly place: "keep" | "yield";
}

export function parseRetry(options: RetryOptions = {}, field = "retry"): RetryPolicy {
  checkOptions(options, RETRY_OPTIONS, field);
  const { attempts = 5, place = "keep" } = options;
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw new InvalidInput(`${field}.attempts`, attempts, "a whole number, 1 or more");
  }
  if (place !== "keep" && place !== "yield") throw new InvalidInput(`${field}.place`, place, "keep or yield");
  return { attempts, ...parseWaits(options, field), place };
}

export type Waits = Pick<RetryPolicy, "backoffMs" | "maxBackoffMs" | "delayMs">;

/** Of two bounds the one that was left out gives way; two that were given and contradict one another are refused. */
export function parseWaits(
  { backoff, maxBackoff, delay }: Omit<RetryOptions, "attempts" | "place">,
  field: string,
): Waits {
  const firstMs = backoff === undefined ? undefined : parseDuration(backoff, `${field}.backoff`);
  const longestMs = maxBackoff === undefined ? undefined : parseDuration(maxBackoff, `${field}.maxBackoff`);
  if (delay !== undefined) {
    if (backoff !== undefined || maxBackoff !== undefined)
      throw new InvalidInput(`${field}.delay`, delay, "either a fixed delay, or backoff and maxBackoff, and not both");
    const delayMs = parseDuration(delay, `${field}.delay`);
    return { backoffMs: delayMs, maxBackoffMs: delayMs, delayMs };
  }
  if (firstMs !== undefined && longestMs !== undefined && firstMs > longestMs)
    throw new InvalidInput(
      `${field}.backoff`,
      backoff,
      `no more than ${field}.maxBackoff, which is ${String(maxBackoff)}`,
    );
  return {
    backoffMs: firstMs ?? Math.min(DEFAULT_BACKOFF_MS, longestMs ?? Infinity),
    maxBackoffMs: longestMs ?? Math.max(DEFAULT_MAX_BACKOFF_MS, firstMs ?? 0),
  };
}

/** Exponential back-off with full jitter: anything from zero to the doubled time, so that failures do not come back in step. */
export function backoffMs(policy: RetryPolicy, attempt: number, random: () => number): number {
  if (policy.delayMs !== undefined) return policy.delayMs;
  const ceiling = Math.min(policy.maxBackoffMs, policy.backoffMs * 2 ** Math.min(attempt - 1, 40));
  return Math.round(random() * ceiling);
}
