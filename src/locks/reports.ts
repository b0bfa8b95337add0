import type { HolderReport, LockReport } from "./port.ts";
import { type Delay, everyone, type Holder, leavesData, type LockRecord, type Moment } from "./rules.ts";

/** What is known of sessions. */
export interface Lives {
  readonly isDead: (session: string) => boolean;
  /** Of one that is dead: nobody has to wait any more because of it. */
  readonly isSpent: (session: string) => boolean;
}

/** How a lock stands for those who look: without the dead, also when nobody has buried them yet. */
export function lockReport(
  name: string,
  record: LockRecord | undefined,
  { isDead, isSpent }: Lives,
  moment: Moment,
): LockReport | undefined {
  if (record === undefined) return undefined;
  const holders = record.holders.filter(({ session }) => !isDead(session));
  const gone = record.holders.filter(({ session }) => isDead(session));
  const waiting = record.waiters.filter(({ session }) => !isDead(session)).length;
  const delayedUntil = latest([
    ...record.delays.filter((delay) => !moment.isOver(delay)),
    ...begin(
      gone.filter(({ session }) => !isSpent(session)),
      moment,
    ),
  ]);
  const retiredUntil = record.retired === undefined || moment.isOver(record.retired) ? undefined : record.retired.until;
  const lastData = lastDataOf(record, gone, holders);
  const isNothing = holders.length + waiting === 0 && delayedUntil === undefined && retiredUntil === undefined;
  if (isNothing && lastData === undefined) return undefined;
  return {
    name,
    slots: record.slots,
    holders: holders.map(holderReport),
    waiting,
    ...(delayedUntil === undefined ? {} : { delayedUntil }),
    ...(retiredUntil === undefined ? {} : { retiredUntil }),
    ...(lastData === undefined ? {} : { lastData }),
  };
}

/** Of a lock of which nobody can tell how it stands. */
export function damagedReport(name: string, damage: Error): LockReport {
  return { name, slots: 1, holders: [], waiting: undefined, damage: damage.message };
}

export function isSameReport(a: LockReport | undefined, b: LockReport | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export function sessionsOf(record: LockRecord | undefined): readonly string[] {
  return everyone(record).map(({ session }) => session);
}

/** Its delay begins when somebody asks for the lock. */
function begin(gone: readonly Holder[], { wall }: Moment): readonly Delay[] {
  return gone.filter(({ delayMs }) => delayMs > 0).map(({ delayMs: ms }) => ({ until: wall + ms, ms }));
}

function latest(delays: readonly Delay[]): number | undefined {
  return delays.length === 0 ? undefined : Math.max(...delays.map(({ until }) => until));
}

function lastDataOf(record: LockRecord, gone: readonly Holder[], holders: readonly Holder[]): string | undefined {
  if (holders.length > 0) return undefined;
  return gone.findLast(leavesData)?.data ?? record.lastData;
}

function holderReport({ owner, session, fence, since, data }: Holder): HolderReport {
  return { owner, session, fence, since, ...(data === undefined ? {} : { data }) };
}
