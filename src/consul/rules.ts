/** How a lock may change: decided here from what was read, done by one transaction, which fails if something else was faster. */
import { InvalidInput } from "../domain/errors.ts";
import type { HolderReport, LockReport } from "../locks/port.ts";
import type { Step } from "./api.ts";
import {
  type Coordination,
  coordinationKey,
  damageOf,
  type HolderRecord,
  type Located,
  type LockState,
  slotKey,
  type SlotEntry,
  type TakenSlot,
  waiterKey,
} from "./lock-keys.ts";

/** Of Consul, in one transaction. */
const MOST_STEPS = 64;
/** A grant has few steps of its own. */
const MOST_REMOVALS = 32;

/** Somebody who wants a slot. */
export interface Contender {
  readonly nonce: string;
  readonly slots: number;
  readonly delayMs: number;
  readonly consulSession: string;
  readonly record: HolderRecord;
}

export type Decision =
  | { readonly kind: "held"; readonly slot: number; readonly fence: number }
  /** `lockStep`: the one that fails alone while Consul delays the slot. */
  | { readonly kind: "take"; readonly slot: number; readonly steps: readonly Step[]; readonly lockStep: number }
  | { readonly kind: "wait"; readonly why: "held" | "delayed" | "retired"; readonly until?: number };

/** @param notBefore slots that Consul has refused for their delay, with the time at which it is asked again */
export function decide(
  lock: string,
  state: LockState,
  contender: Contender,
  notBefore: ReadonlyMap<number, number>,
  now: number,
): Decision {
  const mine = slotOf(state, contender.nonce);
  if (mine !== undefined) return { kind: "held", slot: mine[0], fence: mine[1].modifyIndex };
  checkSlots(state, contender.slots, now);
  const retiredUntil = state.coordination?.retiredUntil ?? 0;
  if (retiredUntil > now) return { kind: "wait", why: "retired", until: retiredUntil };
  const free = freeSlots(state, contender.slots);
  const ready = free.filter((one) => (notBefore.get(one) ?? 0) <= now);
  const ahead = aheadOf(state, contender.nonce);
  const slot = ready[ahead];
  if (slot !== undefined) return { kind: "take", slot, ...stepsToTake(lock, state, contender, slot, now) };
  const next = free.map((one) => notBefore.get(one) ?? 0).filter((time) => time > now);
  const isKept = next.length > 0 || delaysOf(state, free, now).length > 0;
  return {
    kind: "wait",
    why: isKept ? "delayed" : "held",
    ...(next.length > 0 ? { until: Math.min(...next) } : {}),
  };
}

/** Undefined: it is not held under this nonce any more. */
export function stepsToRelease(
  lock: string,
  state: LockState,
  nonce: string,
  retiredUntil: number | undefined,
  now: number,
): readonly Step[] | undefined {
  const found = slotOf(state, nonce);
  if (found === undefined) return undefined;
  const [slot, { key, modifyIndex }] = found;
  // Somebody may have deleted the coordination key: the slot is held all the same.
  const { coordination = { slots: state.slots.size, taken: [] }, coordinationIndex } = state;
  const next: Coordination = {
    ...coordination,
    taken: othersTaken(state, slot, now),
    // The work is done for as long as any of its holders has said: another one does not shorten that.
    ...(retiredUntil === undefined ? {} : { retiredUntil: Math.max(retiredUntil, coordination.retiredUntil ?? 0) }),
  };
  return [...removal(key, modifyIndex), ...coordinate(lock, coordinationIndex, next)];
}

/** For the only slot of a lock, with nothing read before: what the grant wrote has not changed since. */
export function stepsToReleaseOnly(lock: string, fence: number, retiredUntil: number | undefined): readonly Step[] {
  const next: Coordination = { slots: 1, taken: [], ...(retiredUntil === undefined ? {} : { retiredUntil }) };
  return [...removal(slotKey(lock, 0), fence), ...coordinate(lock, fence, next)];
}

/** Writes down losses that nobody has written down yet, so that all who look hear the same. */
export function stepsToNoteLosses(lock: string, state: LockState, now: number): readonly Step[] | undefined {
  const { coordination, coordinationIndex } = state;
  if (
    state.damaged.length > 0 ||
    coordination === undefined ||
    !coordination.taken.some((one) => isUnnoted(state, one))
  )
    return undefined;
  const taken = coordination.taken.map((one) =>
    isUnnoted(state, one) ? { ...one, lostUntil: now + one.delayMs } : one,
  );
  return coordinate(lock, coordinationIndex, { ...coordination, taken });
}

/** Keys that say nothing any more, because a time has passed or somebody died. What a lost holder left behind is kept. */
export function stepsToSweep(lock: string, state: LockState, now: number): readonly Step[] | undefined {
  if (state.damaged.length > 0 || isBinding(state, now)) return undefined;
  const lost = [...state.slots.values()].filter(({ record }) => record.data === undefined);
  const steps = [
    ...(state.coordination === undefined ? [] : removal(coordinationKey(lock), state.coordinationIndex)),
    ...[...lost, ...state.waiters].flatMap(({ key, modifyIndex }) => removal(key, modifyIndex)),
  ];
  return steps.length === 0 ? undefined : steps.slice(0, MOST_STEPS);
}

/** Frees a slot that is among them; its holder is told, as of any key that is removed. */
export function stepsToRepair(damaged: readonly Located[]): readonly Step[] {
  return damaged.flatMap(({ key, modifyIndex }) => removal(key, modifyIndex)).slice(0, MOST_STEPS);
}

export function reportOf(state: LockState, now: number): LockReport | undefined {
  const { coordination, slots } = state;
  const entries = [...slots.values()];
  const holders = entries.filter(({ session }) => session !== undefined).map(holderOf);
  const lastData = holders.length > 0 ? undefined : ghostsOf(state)[0]?.record.data;
  const { foreign } = state;
  const damage = damageOf(state)?.message;
  if (!isBinding(state, now) && lastData === undefined && foreign.length === 0 && damage === undefined)
    return undefined;
  const delayedUntil = delayOf(state, now);
  const retiredUntil = coordination?.retiredUntil ?? 0;
  return {
    name: state.name,
    slots: coordination?.slots ?? state.waiters[0]?.record.slots ?? 1,
    holders,
    waiting: state.waiters.filter(({ session }) => session !== undefined).length,
    ...(delayedUntil === undefined ? {} : { delayedUntil }),
    ...(retiredUntil > now ? { retiredUntil } : {}),
    ...(lastData === undefined ? {} : { lastData }),
    ...(foreign.length === 0 ? {} : { foreign }),
    ...(damage === undefined ? {} : { damage }),
  };
}

/** Slots whose holders died and left data, the last first. */
function ghostsOf({ slots }: LockState): readonly SlotEntry[] {
  return [...slots.values()]
    .filter(({ session, record }) => session === undefined && record.data !== undefined)
    .toSorted((one, other) => other.modifyIndex - one.modifyIndex);
}

export function slotOf(state: LockState, nonce: string): readonly [number, SlotEntry] | undefined {
  for (const [slot, entry] of state.slots) {
    if (entry.record.nonce === nonce && entry.session !== undefined) return [slot, entry];
  }
  return undefined;
}

function stepsToTake(
  lock: string,
  state: LockState,
  { nonce, slots, delayMs, consulSession, record }: Contender,
  slot: number,
  now: number,
): { readonly steps: readonly Step[]; readonly lockStep: number } {
  const taken = othersTaken(state, slot, now);
  const key = slotKey(lock, slot);
  const before = state.slots.get(slot);
  const dead = state.waiters
    .filter((one) => one.session === undefined || one.nonce === nonce)
    .map((one) => waiterKey(lock, one.nonce));
  // What those left who died in other slots shows only until somebody holds the lock again. Whoever takes such a slot first writes the
  // coordination key, and then this does not happen. Its delay stands in that key, and in Consul's own memory.
  const left = ghostsOf(state).filter((one) => one.key !== key);
  const removed = [...left.map((one) => one.key), ...dead].slice(0, MOST_REMOVALS);
  const steps: Step[] = [
    ...coordinate(lock, state.coordinationIndex, { slots, taken: [...taken, { slot, delayMs }] }),
    // Consul lets a session lock what it has locked already, so that the slot is free must be asked for.
    before === undefined ? { verb: "check-not-exists", key } : { verb: "check-index", key, index: before.modifyIndex },
    { verb: "lock", key, session: consulSession, value: JSON.stringify(record) },
    ...removed.map((one): Step => ({ verb: "delete", key: one })),
  ];
  return { steps, lockStep: steps.findIndex(({ verb }) => verb === "lock") };
}

/**
 * Consul leaves a key at its index when it is written with the value that it has. What else was decided on the same state would then
 * still be done. So each value names the index that it replaces, and no value follows one that is like it.
 */
function coordinate(lock: string, index: number, next: Coordination): readonly Step[] {
  const key = coordinationKey(lock);
  if (next.taken.length === 0 && next.retiredUntil === undefined) {
    return index === 0 ? [{ verb: "check-not-exists", key }] : removal(key, index);
  }
  return [{ verb: "cas", key, index, value: JSON.stringify({ ...next, replaces: index }) }];
}

/** Consul's own `delete-cas` would succeed as well when the key is not there any more. */
function removal(key: string, index: number): readonly Step[] {
  return [
    { verb: "check-index", key, index },
    { verb: "delete", key },
  ];
}

function checkSlots(state: LockState, slots: number, now: number): void {
  if (!isBinding(state, now)) return;
  const agreed = state.coordination?.slots ?? state.waiters[0]?.record.slots ?? slots;
  if (agreed !== slots) {
    throw new InvalidInput("slots", slots, `${agreed}, as all others who use the lock ${state.name}`);
  }
}

/** Whether anybody holds it, waits for it or is kept from it. */
function isBinding(state: LockState, now: number): boolean {
  const { coordination, slots, waiters } = state;
  if ([...slots.values(), ...waiters].some(({ session }) => session !== undefined)) return true;
  if ((coordination?.retiredUntil ?? 0) > now) return true;
  return coordination?.taken.some((one) => isDelayed(state, one, now)) ?? false;
}

/** Without the slot itself, and without those that are neither held nor delayed any more. */
function othersTaken(state: LockState, slot: number, now: number): readonly TakenSlot[] {
  const taken = state.coordination?.taken ?? [];
  return taken.filter((one) => one.slot !== slot && (isHeld(state, one.slot) || isDelayed(state, one, now)));
}

function isHeld({ slots }: LockState, slot: number): boolean {
  return slots.get(slot)?.session !== undefined;
}

function isDelayed(state: LockState, one: TakenSlot, now: number): boolean {
  return isUnnoted(state, one) || (one.lostUntil ?? 0) > now;
}

function isUnnoted(state: LockState, { slot, delayMs, lostUntil }: TakenSlot): boolean {
  return delayMs > 0 && lostUntil === undefined && !isHeld(state, slot);
}

/** The end of the first delay, if every slot that is not held is delayed. */
function delayOf(state: LockState, now: number): number | undefined {
  const free = freeSlots(state, state.coordination?.slots ?? 0);
  const delays = delaysOf(state, free, now);
  return delays.length === 0 || delays.length < free.length ? undefined : Math.min(...delays);
}

/** When the slots among these that are delayed are free again, at the latest. */
function delaysOf({ coordination }: LockState, free: readonly number[], now: number): readonly number[] {
  const lost = coordination?.taken.filter(({ slot }) => free.includes(slot)) ?? [];
  return lost.map(({ delayMs, lostUntil }) => lostUntil ?? now + delayMs).filter((until) => until > now);
}

function freeSlots(state: LockState, slots: number): readonly number[] {
  return Array.from({ length: slots }, (_, slot) => slot).filter((slot) => !isHeld(state, slot));
}

/** Those who wait and came before; whoever does not wait yet comes after all. */
function aheadOf({ waiters }: LockState, nonce: string): number {
  const alive = waiters.filter(({ session }) => session !== undefined);
  const place = alive.findIndex((one) => one.nonce === nonce);
  return place === -1 ? alive.length : place;
}

function holderOf({ record, modifyIndex }: SlotEntry): HolderReport {
  return {
    owner: record.owner,
    session: record.session,
    // A slot that is held is never written again, so the index of its key is still that of the grant.
    fence: modifyIndex,
    since: record.since,
    ...(record.data === undefined ? {} : { data: record.data }),
  };
}
