/** How a lock is to stand by the model, and how it stands, both without the times, which differ from run to run. */
import type { Locks, LockReport } from "../../../src/locks/port.ts";
import type { ModelCall, ModelLock } from "./model.ts";

export interface SeenHolder {
  readonly owner: string;
  readonly session: string;
  readonly fence: number;
  readonly data: string | undefined;
}

export interface Seen {
  readonly name: string;
  /** Of a lock that nobody uses nothing has to be agreed on. */
  readonly slots: number | undefined;
  readonly holders: readonly SeenHolder[];
  readonly waiting: number | undefined;
  readonly isDelayed: boolean;
  readonly isRetired: boolean;
  readonly lastData: string | undefined;
}

export function expectedOf(
  name: string,
  { holders, waiters, isRetired, slots, lastData }: ModelLock,
  holderOf: (one: ModelCall) => SeenHolder,
): Seen | undefined {
  const isUsed = holders.length + waiters.length > 0;
  if (!isUsed && !isRetired && lastData === undefined) return undefined;
  return {
    name,
    slots: isUsed ? slots : undefined,
    holders: inOrder(holders.map(holderOf)),
    waiting: waiters.length,
    isDelayed: false,
    isRetired,
    lastData: holders.length === 0 ? lastData : undefined,
  };
}

export function seen(report: LockReport | undefined): Seen | undefined {
  if (report === undefined) return undefined;
  const { name, slots, holders, waiting, delayedUntil, retiredUntil, lastData } = report;
  return {
    name,
    slots: holders.length + (waiting ?? 0) === 0 ? undefined : slots,
    holders: inOrder(holders.map(({ owner, session, fence, data }) => ({ owner, session, fence, data }))),
    waiting,
    isDelayed: delayedUntil !== undefined,
    isRetired: retiredUntil !== undefined,
    lastData,
  };
}

export async function untilSeen(
  locks: Locks,
  name: string,
  isIt: (report: LockReport | undefined) => boolean,
): Promise<void> {
  if (isIt(await locks.read(name))) return;
  const end = new AbortController();
  const changed = (report: LockReport | undefined): void => {
    if (isIt(report)) end.abort();
  };
  await locks.watch({ name, changed, signal: end.signal });
}

function inOrder(holders: readonly SeenHolder[]): readonly SeenHolder[] {
  return holders.toSorted((a, b) => a.fence - b.fence);
}
