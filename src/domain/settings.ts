import { type Duration, parseDuration } from "./duration.ts";
import { InvalidInput } from "./errors.ts";
import { LONGEST_LEASE_MS, SHORTEST_LEASE_MS } from "./lease.ts";
import { checkLevels } from "./level.ts";
import { checkOptions, type OptionNames } from "./options.ts";
import { parseRetry, type RetryOptions, type RetryPolicy } from "./retry.ts";

/**
 * What happens when an item is submitted for a key that already has one.
 * `fifo`: it waits in line. `latest`: it replaces what waits. `strict`: it is refused.
 */
export type Mode = "fifo" | "latest" | "strict";

const MODES: readonly string[] = ["fifo", "latest", "strict"] satisfies readonly Mode[];

export interface QueueOptions {
  /** Default `fifo`. A submission may choose its own. */
  readonly mode?: Mode | undefined;
  /** Names, most urgent first. Stored with the queue when it is first used. Default high, normal, low. */
  readonly levels?: readonly string[] | undefined;
  /** How long a worker holds a key without renewing. Default 30s. */
  readonly lease?: Duration | undefined;
  readonly retry?: RetryOptions | undefined;
  readonly limits?: LimitOptions | undefined;
  /** How long a ready key of a less urgent level waits before it is taken out of turn. Default 1m. */
  readonly patience?: Duration | undefined;
  /** How long an id is remembered after its item ended. Default 1d. */
  readonly remember?: Duration | undefined;
  /** Keep how each item ended, also of items without an id, for this long. Default 0: not kept. */
  readonly history?: Duration | undefined;
}

export interface LimitOptions {
  /** Items that may wait for one key (mode fifo). Default 1,000,000. */
  readonly perKey?: number | undefined;
  /** Items that may wait in the whole queue. Default 10,000,000. */
  readonly perQueue?: number | undefined;
  /** Bytes of one payload, and of one result. Default 262,144 (256 KiB). */
  readonly payload?: number | undefined;
}

const QUEUE_OPTIONS: OptionNames<QueueOptions> = {
  mode: true,
  levels: true,
  lease: true,
  retry: true,
  limits: true,
  patience: true,
  remember: true,
  history: true,
};
const LIMIT_OPTIONS: OptionNames<LimitOptions> = { perKey: true, perQueue: true, payload: true };

export interface QueueSettings {
  readonly mode: Mode;
  /** Undefined: take the stored ones. */
  readonly levels: readonly string[] | undefined;
  readonly leaseMs: number;
  readonly retry: RetryPolicy;
  readonly keyLimit: number;
  readonly queueLimit: number;
  readonly payloadLimit: number;
  readonly patienceMs: number;
  readonly rememberMs: number;
  readonly historyMs: number;
}

export function parseQueueOptions(options: QueueOptions = {}): QueueSettings {
  checkOptions(options, QUEUE_OPTIONS);
  const { limits = {} } = options;
  checkOptions(limits, LIMIT_OPTIONS, "limits");
  return {
    mode: checkMode(options.mode ?? "fifo"),
    levels: options.levels === undefined ? undefined : checkLevels(options.levels),
    leaseMs: parseLease(options.lease ?? "30s"),
    retry: parseRetry(options.retry),
    keyLimit: checkCount(limits.perKey ?? 1_000_000, "limits.perKey"),
    queueLimit: checkCount(limits.perQueue ?? 10_000_000, "limits.perQueue"),
    payloadLimit: checkCount(limits.payload ?? 256 * 1024, "limits.payload"),
    patienceMs: parseDuration(options.patience ?? "1m", "patience"),
    rememberMs: parseDuration(options.remember ?? "1d", "remember"),
    historyMs: parseDuration(options.history ?? 0, "history"),
  };
}

export function checkMode(value: string, field = "mode"): Mode {
  if (isMode(value)) return value;
  throw new InvalidInput(field, value, MODES.join(", "));
}

export function parseLease(value: Duration, field = "lease"): number {
  const leaseMs = parseDuration(value, field);
  if (leaseMs < SHORTEST_LEASE_MS || leaseMs > LONGEST_LEASE_MS) throw new InvalidInput(field, value, "100ms to 1d");
  return leaseMs;
}

export function checkCount(value: number, field: string): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidInput(field, value, "a whole number, 1 or more");
}

function isMode(value: string): value is Mode {
  return MODES.includes(value);
}
