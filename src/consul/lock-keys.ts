/**
 * The keys of one lock, below `<prefix>/<name>/`:
 *
 *     lock          the coordination key: how many slots, and what becomes of them. Every grant and every release is a
 *                   check-and-set of it, so that two decisions never rest on the same state.
 *     slot/<n>      a holder, locked by its Consul session: Consul frees it when the session runs out, and then keeps it from
 *                   everybody for the session's lock-delay.
 *     wait/<nonce>  a waiter, locked by its Consul session. Those that came first have the lower CreateIndex.
 *
 * This is Consul's own recipe for semaphores, with the contenders' keys numbered: a lock-delay belongs to a key, so the next holder must
 * want the same key as the last.
 */
import { BatonError } from "../domain/errors.ts";
import type { Entries, Entry } from "./api.ts";
import { type Fields, fieldsOf, listOf, numberOf, textOf } from "./json.ts";

export interface LockState {
  readonly name: string;
  readonly index: number;
  readonly coordination: Coordination | undefined;
  /** Of the coordination key; 0: there is none. */
  readonly coordinationIndex: number;
  /** By number. Those without a session were lost. */
  readonly slots: ReadonlyMap<number, SlotEntry>;
  /** In the order of arrival. Those without a session are dead. */
  readonly waiters: readonly WaiterEntry[];
}

export interface Coordination {
  readonly slots: number;
  readonly taken: readonly TakenSlot[];
  /** By the wall clock of who released it. */
  readonly retiredUntil?: number;
}

/** Outlives the slot's own key, which goes with its session where that says `delete`. */
export interface TakenSlot {
  readonly slot: number;
  readonly delayMs: number;
  /** The slot was seen to be lost. Consul does not tell when its delay ends; by the wall clock of who saw it, no later than this. */
  readonly lostUntil?: number;
}

export interface SlotEntry extends Located {
  readonly record: HolderRecord;
}

export interface WaiterEntry extends Located {
  readonly nonce: string;
  readonly record: WaiterRecord;
}

interface Located {
  readonly key: string;
  readonly session: string | undefined;
  readonly modifyIndex: number;
}

export interface HolderRecord {
  /** Tells one acquire from another under the same session. */
  readonly nonce: string;
  readonly session: string;
  readonly owner: string;
  readonly since: number;
  readonly data?: string;
}

export interface WaiterRecord {
  readonly owner: string;
  readonly slots: number;
}

/** Injective, readable, and without anything that a path or a URL gives a meaning to. */
export function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll(".", "%2E");
}

export function lockPrefix(prefix: string, name: string): string {
  return `${prefix}/${encodeName(name)}/`;
}

export function coordinationKey(lock: string): string {
  return `${lock}lock`;
}

export function slotKey(lock: string, slot: number): string {
  return `${lock}slot/${slot}`;
}

export function waiterKey(lock: string, nonce: string): string {
  return `${lock}wait/${nonce}`;
}

export function lockState(name: string, lock: string, { entries, index }: Entries): LockState {
  const slots = new Map<number, SlotEntry>();
  const waiters: (WaiterEntry & { readonly createIndex: number })[] = [];
  let coordination: Entry | undefined;
  for (const entry of entries) {
    const [kind, rest = ""] = entry.key.slice(lock.length).split("/");
    if (kind === "lock") coordination = entry;
    else if (kind === "slot") slots.set(Number(rest), { ...entry, record: read(entry, holderRecordOf) });
    else if (kind === "wait") waiters.push({ ...entry, nonce: rest, record: read(entry, waiterRecordOf) });
  }
  return {
    name,
    index,
    coordination: coordination === undefined ? undefined : read(coordination, coordinationOf),
    coordinationIndex: coordination?.modifyIndex ?? 0,
    slots,
    waiters: waiters.toSorted((one, other) => one.createIndex - other.createIndex),
  };
}

/** The entries below the whole prefix, lock by lock. */
export function lockStates(prefix: string, { entries, index }: Entries): readonly LockState[] {
  const byName = Map.groupBy(entries, ({ key }) => key.slice(prefix.length + 1).split("/")[0] ?? "");
  return Array.from(byName, ([encoded, its]) => {
    const name = decodeURIComponent(encoded);
    return lockState(name, lockPrefix(prefix, name), { entries: its, index });
  });
}

function read<Read>({ key, value }: Entry, reader: (fields: Fields) => Read): Read {
  try {
    return reader(fieldsOf(JSON.parse(value)));
  } catch (cause) {
    throw new BatonError(
      "STORE_CORRUPT",
      `The key ${key} in Consul was not written by Baton. Nothing was done. Remove it, or use another prefix.`,
      { cause },
    );
  }
}

function coordinationOf(fields: Fields): Coordination {
  const { retiredUntil, taken } = fields;
  return {
    slots: numberOf(fields, "slots"),
    taken: listOf(taken).map((one) => takenSlotOf(fieldsOf(one))),
    ...(typeof retiredUntil === "number" ? { retiredUntil } : {}),
  };
}

function takenSlotOf(fields: Fields): TakenSlot {
  const { lostUntil } = fields;
  return {
    slot: numberOf(fields, "slot"),
    delayMs: numberOf(fields, "delayMs"),
    ...(typeof lostUntil === "number" ? { lostUntil } : {}),
  };
}

function holderRecordOf(fields: Fields): HolderRecord {
  const { data } = fields;
  return {
    nonce: textOf(fields, "nonce"),
    session: textOf(fields, "session"),
    owner: textOf(fields, "owner"),
    since: numberOf(fields, "since"),
    ...(typeof data === "string" ? { data } : {}),
  };
}

function waiterRecordOf(fields: Fields): WaiterRecord {
  return { owner: textOf(fields, "owner"), slots: numberOf(fields, "slots") };
}
