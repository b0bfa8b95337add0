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
  /** Keys that Baton did not write, such as those of `consul lock` for the same prefix. They bind nobody here. */
  readonly foreign: readonly string[];
  /** Keys that decide about the lock and cannot be read: while there are any, nothing may be decided. */
  readonly damaged: readonly Located[];
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

export interface Located {
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

const NO_HOLDER: HolderRecord = { nonce: "", session: "", owner: "", since: 0 };

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
  const foreign: string[] = [];
  let coordination: Entry | undefined;
  let agreed: Coordination | undefined;
  const damaged: Located[] = [];
  for (const entry of entries) {
    const [kind = "", rest, ...more] = entry.key.slice(lock.length).split("/");
    const isDeeper = more.length > 0;
    if (kind === "lock" && rest === undefined) {
      coordination = entry;
      agreed = read(entry, coordinationOf);
      if (agreed === undefined) damaged.push(entry);
    } else if (kind === "slot" && !isDeeper && /^\d+$/.test(rest ?? "")) {
      // Consul empties the value of a key that is released by its API without a new one: that slot is free.
      const record = read(entry, holderRecordOf) ?? (entry.session === undefined ? NO_HOLDER : undefined);
      if (record === undefined) damaged.push(entry);
      else slots.set(Number(rest), { ...entry, record });
    } else {
      const record = kind === "wait" && !isDeeper && rest !== undefined ? read(entry, waiterRecordOf) : undefined;
      if (record !== undefined && rest !== undefined) waiters.push({ ...entry, nonce: rest, record });
      // Consul's own pages make such a key for an empty folder.
      else if (!entry.key.endsWith("/")) foreign.push(entry.key);
    }
  }
  return {
    name,
    index,
    coordination: agreed,
    coordinationIndex: coordination?.modifyIndex ?? 0,
    slots,
    waiters: waiters.toSorted((one, other) => one.createIndex - other.createIndex),
    foreign,
    damaged,
  };
}

/** The entries below the whole prefix, lock by lock. */
export function lockStates(prefix: string, { entries, index }: Entries): readonly LockState[] {
  const byName = Map.groupBy(entries, ({ key }) => key.slice(prefix.length + 1).split("/")[0] ?? "");
  return Array.from(byName, ([encoded, its]) => {
    const name = decodeName(encoded);
    if (name !== undefined) return lockState(name, lockPrefix(prefix, name), { entries: its, index });
    const foreign = its.map(({ key }) => key).filter((key) => !key.endsWith("/"));
    return { ...lockState(encoded, "", { entries: [], index }), foreign };
  });
}

/** The nonce in a holder's key; undefined when Baton did not write its value. */
export function nonceIn(entry: Entry): string | undefined {
  return read(entry, holderRecordOf)?.nonce;
}

/** Undefined: Baton never writes such a name. */
function decodeName(encoded: string): string | undefined {
  try {
    const name = decodeURIComponent(encoded);
    return name !== "" && encodeName(name) === encoded ? name : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined: Baton did not write it. */
function read<Read>({ value }: Entry, reader: (fields: Fields) => Read): Read | undefined {
  try {
    return reader(fieldsOf(JSON.parse(value)));
  } catch {
    return undefined;
  }
}

/** Why nobody can take or free the lock. */
export function damageOf({ name, damaged }: LockState): BatonError | undefined {
  if (damaged.length === 0) return undefined;
  return new BatonError(
    "STORE_CORRUPT",
    `The record of lock ${name} is damaged: somebody else wrote ${keysIn(damaged)}. Nobody can take or free this lock; ` +
      "others go on. Make sure that nobody holds it, then run baton doctor --repair; or use another prefix.",
  );
}

export function assertReadable(state: LockState): void {
  const damage = damageOf(state);
  if (damage !== undefined) throw damage;
}

export function keysIn(located: readonly Located[]): string {
  return located.map(({ key }) => key).join(", ");
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
