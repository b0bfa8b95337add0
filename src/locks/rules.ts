/**
 * How a lock's record changes. Pure: what is true now goes in, the record to write comes out, and the same object when there
 * is nothing to write.
 *
 *   absent ──join──▶ waiter ──serve──▶ holder ──leave──▶ absent
 *                      │                  │
 *                      └──leave, bury──▶  └──bury──▶ a delay takes the slot, then absent
 *
 * A slot is free when neither a holder nor a delay has it, and the lock is not retired. Every write that finds a free slot
 * gives one to the first waiter, and no write gives more than one: the fence of a hold is the version of the write
 * that granted it, and two holds must not share it.
 */

/** Those who come when so many wait already wait without a place, and get one when there is room. */
export const MOST_WAITERS = 64;

export interface LockRecord {
  readonly slots: number;
  readonly holders: readonly Holder[];
  /** First come first. */
  readonly waiters: readonly Waiter[];
  /** Each keeps one slot from everybody, because its holder vanished. */
  readonly delays: readonly Delay[];
  readonly retired?: Delay;
  /** What the last holder that vanished left; until somebody holds the lock again. */
  readonly lastData?: string;
}

export interface Waiter {
  /** Made for one call of `acquire`: tells its holder from every other, also under the same session. */
  readonly nonce: string;
  readonly session: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly delayMs: number;
  readonly expiry: "release" | "delete";
  readonly data?: string;
}

export interface Holder extends Waiter {
  /** 0: the version of the write that made this record. A record cannot contain its own version. */
  readonly fence: number;
  readonly since: number;
}

export interface Delay {
  /** By the wall clock of whoever wrote it. */
  readonly until: number;
  /** How long it was to be, so that a clock that is far ahead cannot make it longer. */
  readonly ms: number;
}

/** What is true at the moment of a change. */
export interface Moment {
  readonly wall: number;
  isOver(delay: Delay): boolean;
}

/** Puts the fence in place of the zero. */
export function withFences(record: LockRecord, version: number): LockRecord {
  if (record.holders.every(({ fence }) => fence !== 0)) return record;
  return {
    ...record,
    holders: record.holders.map((holder) => (holder.fence === 0 ? { ...holder, fence: version } : holder)),
  };
}

export function holderOf(record: LockRecord | undefined, nonce: string): Holder | undefined {
  return record?.holders.find((holder) => holder.nonce === nonce);
}

/** All who take part, those who are served first at the front. */
export function everyone(record: LockRecord | undefined): readonly Waiter[] {
  return record === undefined ? [] : [...record.holders, ...record.waiters];
}

/** Whom this waiter looks after: the one before it in line, or the holders if it is the first. */
export function ahead(record: LockRecord | undefined, nonce: string): readonly Waiter[] {
  if (record === undefined) return [];
  const place = record.waiters.findIndex((waiter) => waiter.nonce === nonce);
  const before = record.waiters.at(place === -1 ? -1 : place - 1);
  return place === 0 || before === undefined ? record.holders : [before];
}

/**
 * Whom a change concerns, of those who waited before it: who holds now, who has somebody new to look after, and the first in line
 * while not all slots are held. Nobody else is woken, so that a hand-over costs the same however many wait.
 */
export function concerned(before: LockRecord | undefined, after: LockRecord | undefined): readonly string[] {
  if (before === undefined || after === undefined) return [];
  const waited = new Set(before.waiters.map(({ nonce }) => nonce));
  const hasFreeSlot = after.holders.length < after.slots;
  const isConcerned = ({ nonce }: Waiter): boolean => {
    if (holderOf(after, nonce) !== undefined || (hasFreeSlot && after.waiters[0]?.nonce === nonce)) return true;
    const known = ahead(before, nonce);
    return ahead(after, nonce).some((one) => known.every((other) => other.nonce !== one.nonce));
  };
  const those = everyone(after).filter((one) => waited.has(one.nonce) && isConcerned(one));
  return those.map(({ nonce }) => nonce);
}

/** The waiter at the end of the line, where there is room; and holding at once, where a slot is free. */
export function join(record: LockRecord | undefined, waiter: Waiter, slots: number, moment: Moment): LockRecord {
  const before = record === undefined || everyone(record).length === 0 ? { ...(record ?? NOBODY), slots } : record;
  const hasPlace = everyone(before).some(({ nonce }) => nonce === waiter.nonce);
  const hasRoom = before.slots === slots && before.waiters.length < MOST_WAITERS;
  return serve(hasPlace || !hasRoom ? (record ?? before) : { ...before, waiters: [...before.waiters, waiter] }, moment);
}

/** Without the holder or waiter, and the slot with whoever is next; or, if a holder says so, with nobody for a time. */
export function leave(
  record: LockRecord | undefined,
  nonce: string,
  moment: Moment,
  retireMs?: number,
): LockRecord | undefined {
  if (record === undefined || everyone(record).every((one) => one.nonce !== nonce)) return record;
  const isOther = (one: Waiter): boolean => one.nonce !== nonce;
  const isRetiring = retireMs !== undefined && holderOf(record, nonce) !== undefined;
  const rest: LockRecord = {
    ...record,
    holders: record.holders.filter(isOther),
    waiters: record.waiters.filter(isOther),
    ...(isRetiring ? { retired: retiredFor(record, retireMs, moment) } : {}),
  };
  return tidy(serve(rest, moment), moment);
}

/** Without those whose sessions are over. A holder that vanished leaves its data, and its delay unless that is over as well. */
export function bury(
  record: LockRecord,
  dead: ReadonlySet<string>,
  moment: Moment,
  spent: ReadonlySet<string> = new Set(),
): LockRecord | undefined {
  const gone = record.holders.filter(({ session }) => dead.has(session));
  const waiters = record.waiters.filter(({ session }) => !dead.has(session));
  if (gone.length === 0 && waiters.length === record.waiters.length) return record;
  const delayed = gone.filter(({ delayMs, session }) => delayMs > 0 && !spent.has(session));
  const delays = delayed.map(({ delayMs: ms }) => ({ until: moment.wall + ms, ms }));
  const left = gone.findLast(leavesData);
  const rest: LockRecord = {
    ...record,
    holders: record.holders.filter(({ session }) => !dead.has(session)),
    waiters,
    delays: [...record.delays, ...delays],
    ...(left?.data === undefined ? {} : { lastData: left.data }),
  };
  return tidy(serve(rest, moment), moment);
}

/**
 * Without what the dead leave, because somebody holds the lock now who came after them. They stand in the record as long as no one wants
 * their slots, and must not be taken for the last who held it.
 */
export function forgetData(record: LockRecord, dead: ReadonlySet<string>): LockRecord {
  const isForgotten = (one: Holder): boolean => dead.has(one.session) && leavesData(one);
  if (!record.holders.some(isForgotten)) return record;
  return { ...record, holders: record.holders.map((one) => (isForgotten(one) ? withoutData(one) : one)) };
}

function withoutData(holder: Holder): Holder {
  const { data: _, ...rest } = holder;
  return rest;
}

/** Whether something of it stays when it vanishes. */
export function leavesData({ expiry, data }: Holder): boolean {
  return expiry === "release" && data !== undefined;
}

/** Why somebody who asks now gets nothing. */
export function refusal(record: LockRecord | undefined, moment: Moment): "held" | "delayed" | "retired" {
  if (isRetired(record, moment)) return "retired";
  const isDelayed = record !== undefined && record.holders.length < record.slots && closedSlots(record, moment) > 0;
  return isDelayed ? "delayed" : "held";
}

/** Slots that nobody can have now, whoever is alive: those under a delay, or all of a retired lock. */
export function closedSlots(record: LockRecord, moment: Moment): number {
  return isRetired(record, moment) ? record.slots : record.delays.filter((delay) => !moment.isOver(delay)).length;
}

/** What time alone will end. */
export function delaysOf(record: LockRecord | undefined): readonly Delay[] {
  if (record === undefined) return [];
  return record.retired === undefined ? record.delays : [...record.delays, record.retired];
}

/** How long a record is worth keeping in which nobody takes part. Undefined: until it is changed. */
export function keepMs(record: LockRecord): number | undefined {
  if (everyone(record).length > 0) return undefined;
  return Math.max(1, ...delaysOf(record).map(({ ms }) => ms));
}

const NOBODY = { holders: [], waiters: [], delays: [] } as const;

function isRetired(record: LockRecord | undefined, moment: Moment): boolean {
  return record?.retired !== undefined && !moment.isOver(record.retired);
}

/** The work is done for as long as any of its holders has said: another one does not shorten that. */
function retiredFor(record: LockRecord, ms: number, moment: Moment): Delay {
  const until = moment.wall + ms;
  const { retired } = record;
  return retired !== undefined && isRetired(record, moment) && retired.until > until ? retired : { until, ms };
}

function serve(record: LockRecord, moment: Moment): LockRecord {
  const [next, ...waiters] = record.waiters;
  // This write has granted already, and a second hold would have the same fence.
  if (record.holders.some(({ fence }) => fence === 0)) return record;
  if (next === undefined || record.holders.length + closedSlots(record, moment) >= record.slots) return record;
  // What is over is over for all: a clock that is behind must not find it again.
  const { lastData: _, retired: __, ...rest } = record;
  return {
    ...rest,
    delays: record.delays.filter((delay) => !moment.isOver(delay)),
    holders: [...record.holders, { ...next, fence: 0, since: moment.wall }],
    waiters,
  };
}

/** Without what is over; undefined when nothing is left to say. */
function tidy({ retired, ...record }: LockRecord, moment: Moment): LockRecord | undefined {
  const delays = record.delays.filter((delay) => !moment.isOver(delay));
  const isStill = retired !== undefined && !moment.isOver(retired);
  if (everyone(record).length === 0 && delays.length === 0 && !isStill) return undefined;
  return { ...record, delays, ...(isStill ? { retired } : {}) };
}
