import { InvalidInput } from "../domain/errors.ts";
import { checkKey } from "../domain/names.ts";
import type { AcquireRequest, LockLimits, ReleaseRequest, SessionRequest } from "./port.ts";

/** As it is written down. With as many holders and waiters as there can be, a record stays below a mebibyte. */
const LONGEST_DATA_BYTES = 4_096;
export const LONGEST_RETIRE_MS: number = 366 * 86_400_000;

export function checkSession({ owner, leaseMs }: SessionRequest, limits: LockLimits): void {
  checkKey(owner, "owner");
  checkNumber("leaseMs", leaseMs, limits.shortestLeaseMs, limits.longestLeaseMs, "milliseconds");
}

export function checkAcquire({ name, slots, delayAfterLossMs, data }: AcquireRequest, limits: LockLimits): void {
  checkLockName(name);
  checkNumber("slots", slots, 1, limits.mostSlots, "holders");
  checkNumber("delayAfterLossMs", delayAfterLossMs, 0, limits.longestDelayMs, "milliseconds");
  if (data !== undefined && (!data.isWellFormed() || Buffer.byteLength(JSON.stringify(data)) - 2 > LONGEST_DATA_BYTES))
    throw new InvalidInput("data", data, `a text of at most ${LONGEST_DATA_BYTES} bytes, as JSON`);
}

export function checkRelease({ retireMs }: ReleaseRequest): void {
  if (retireMs !== undefined) checkNumber("retireMs", retireMs, 0, LONGEST_RETIRE_MS, "milliseconds");
}

export function checkLockName(name: string): string {
  return checkKey(name, "name");
}

function checkNumber(field: string, value: number, least: number, most: number, unit: string): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new InvalidInput(field, value, `a whole number of ${unit} from ${least} to ${most}`);
}
