import { formatDuration } from "../domain/duration.ts";
import { InvalidInput } from "../domain/errors.ts";
import { checkKey } from "../domain/names.ts";
import type { AcquireRequest, LockLimits, ReleaseRequest, SessionRequest } from "./port.ts";

/** As it is written down. With as many holders and waiters as there can be, a record stays below a mebibyte. */
const LONGEST_DATA_BYTES = 4_096;
export const LONGEST_RETIRE_MS: number = 366 * 86_400_000;

export function checkSession({ owner, leaseMs }: SessionRequest, limits: LockLimits): void {
  checkKey(owner, "owner");
  const { shortestLeaseMs, longestLeaseMs, leaseAdvice } = limits;
  checkTime("lease", leaseMs, shortestLeaseMs, longestLeaseMs, leaseAdvice);
}

export function checkAcquire({ name, slots, delayAfterLossMs, data }: AcquireRequest, limits: LockLimits): void {
  checkLockName(name);
  if (!isWithin(slots, 1, limits.mostSlots))
    throw new InvalidInput("slots", slots, `a whole number of holders from 1 to ${limits.mostSlots}`);
  checkTime("delayAfterLoss", delayAfterLossMs, 0, limits.longestDelayMs);
  if (data !== undefined && (!data.isWellFormed() || Buffer.byteLength(JSON.stringify(data)) - 2 > LONGEST_DATA_BYTES))
    throw new InvalidInput("data", data, `a text of at most ${LONGEST_DATA_BYTES} bytes, as JSON`);
}

export function checkRelease({ retireMs }: ReleaseRequest): void {
  if (retireMs !== undefined) checkTime("retire", retireMs, 0, LONGEST_RETIRE_MS);
}

export function checkLockName(name: string): string {
  return checkKey(name, "name");
}

/** Says it in the words of whoever gave the time: they know no names that end in `Ms`. */
function checkTime(field: string, ms: number, leastMs: number, mostMs: number, advice?: string): void {
  if (isWithin(ms, leastMs, mostMs)) return;
  const found = Number.isSafeInteger(ms) && ms >= 0 ? formatDuration(ms) : ms;
  const rule = `a time from ${formatDuration(leastMs)} to ${formatDuration(mostMs)}`;
  throw new InvalidInput(field, found, advice === undefined ? rule : `${rule} (${advice})`);
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}
