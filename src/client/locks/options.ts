import { hostname } from "node:os";
import { type Duration, parseDuration } from "../../domain/duration.ts";
import { InvalidInput } from "../../domain/errors.ts";
import { checkReference } from "../../domain/names.ts";
import { checkFunction, checkOptions, checkSignal, type OptionNames } from "../../domain/options.ts";
import { checkCount, parseLease } from "../../domain/settings.ts";
import { LONGEST_RETIRE_MS } from "../../locks/requests.ts";

export interface LockOptions {
  /** How long the lock stays taken if this process is lost; renewed meanwhile. Default 15s. */
  readonly lease?: Duration | undefined;
  /**
   * How long to wait: a time, `"0s"` to try once, or `"forever"`. Default forever: whoever forgets to say gets a delay, which is
   * seen, rather than an error that a busy day brings.
   */
  readonly wait?: Duration | undefined;
  /** Gives up waiting. */
  readonly signal?: AbortSignal | undefined;
  /** How many may hold the lock at a time. All who use the name must agree. Default 1. */
  readonly slots?: number | undefined;
  /**
   * After a holder vanished, nobody gets its slot for this long: for resources that cannot check a fence. Not after a release.
   * Default 0s.
   */
  readonly delayAfterLoss?: Duration | undefined;
  /** Shown to whoever looks at the lock: an address, a version. */
  readonly data?: string | undefined;
}

/** Of a lock under a session that is there: the lease is the session's. */
export type SessionLockOptions = Omit<LockOptions, "lease">;

const SESSION_LOCK_OPTIONS: OptionNames<SessionLockOptions> = {
  wait: true,
  signal: true,
  slots: true,
  delayAfterLoss: true,
  data: true,
};
const LOCK_OPTIONS: OptionNames<LockOptions> = { ...SESSION_LOCK_OPTIONS, lease: true };

export interface SessionOptions {
  /** Default 15s. */
  readonly lease?: Duration | undefined;
  /** What becomes of a lock's data when the session runs out. Default release: it is kept for whoever looks. */
  readonly expiry?: "release" | "delete" | undefined;
  /** Who it is, for people. Default: host and process. */
  readonly owner?: string | undefined;
}

export const SESSION_OPTIONS: OptionNames<SessionOptions> = { lease: true, expiry: true, owner: true };

export interface LockSettings {
  /** Infinity: for ever. */
  readonly waitMs: number;
  readonly slots: number;
  readonly delayAfterLossMs: number;
  readonly data: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Long enough for a pause of the process, short enough to wait for. */
const DEFAULT_LEASE = "15s";
/** It travels with every write of the lock. */
const LONGEST_DATA_BYTES = 4 * 1024;

export function checkLockName(name: string): string {
  return checkReference(name, "lock");
}

export function lockLeaseMs(lease: Duration = DEFAULT_LEASE): number {
  return parseLease(lease);
}

/** Infinity: for ever. */
export function parseWait(wait: Duration = "forever"): number {
  return wait === "forever" ? Infinity : parseDuration(wait, "wait");
}

export function parseLockOptions(options: LockOptions): LockSettings & { readonly leaseMs: number } {
  const { lease, ...others } = checkOptions(options, LOCK_OPTIONS);
  return { ...parseSessionLockOptions(others), leaseMs: lockLeaseMs(lease) };
}

export function parseSessionLockOptions(options: SessionLockOptions): LockSettings {
  const { wait, slots = 1, delayAfterLoss = 0, data, signal } = checkOptions(options, SESSION_LOCK_OPTIONS);
  return {
    waitMs: parseWait(wait),
    slots: checkCount(slots, "slots"),
    delayAfterLossMs: parseDuration(delayAfterLoss, "delayAfterLoss"),
    data: data === undefined ? undefined : checkData(data),
    signal: checkSignal(signal),
  };
}

export function parseRetire(retire: Duration, field: string): number {
  const retireMs = parseDuration(retire, field);
  if (retireMs <= LONGEST_RETIRE_MS) return retireMs;
  throw new InvalidInput(field, retire, "at most 366d");
}

export function checkOwner(owner: string = `${hostname()}:${process.pid}`, field = "owner"): string {
  return checkReference(owner, field);
}

/** What runs while a lock is held. Looked at before the lock is taken. */
export function checkWork<W>(work: W): W {
  return checkFunction(work, "work", "runs while the lock is held");
}

export function checkExpiry(expiry: string): "release" | "delete" {
  if (expiry === "release" || expiry === "delete") return expiry;
  throw new InvalidInput("expiry", expiry, "release or delete");
}

function checkData(data: string): string {
  if (typeof data === "string" && data.isWellFormed() && Buffer.byteLength(data) <= LONGEST_DATA_BYTES) return data;
  throw new InvalidInput("data", data, `a text of at most ${LONGEST_DATA_BYTES} bytes of UTF-8`);
}
