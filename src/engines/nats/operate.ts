/** What operators do: cancel, pause, bring dead letters back. */
import type { CancelResult, Outcome, ReviveRequest } from "../../engine/port.ts";
import { tokenOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";
import { type DeadLetter, itemId, keyOfId } from "./receipts.ts";
import { ended, STAYS_ANNOUNCED } from "./rules.ts";
import { type KeyItem, type KeyState, NOTHING, type Seen, type Todo, type Waiting } from "./state.ts";
import type { Submitter } from "./submit.ts";

const PAGE = 256;

export type Place =
  | { readonly type: "state"; readonly item: KeyItem; readonly index: number; readonly seen: Seen }
  | { readonly type: "line"; readonly waiting: Waiting; readonly seen: Seen }
  | { readonly type: "delayed"; readonly item: KeyItem; readonly dueAt: number; readonly sequence: number }
  /** It has just ended, or steps aside; what is to be remembered of that is being written. */
  | { readonly type: "leaving"; readonly todo: Exclude<Todo, { readonly type: "wake" }> }
  | { readonly type: "nowhere" };

/** Where an item of a key is now. */
export async function locate(store: KeyStore, key: string, id: string): Promise<Place> {
  const seen = await store.read(key);
  const index = seen.state.items.findIndex((item) => itemId(item, key) === id);
  const item = seen.state.items[index];
  if (item !== undefined) return { type: "state", item, index, seen };
  const todo = seen.state.todo.find((entry) => entry.type !== "wake" && itemId(entry.item, key) === id);
  if (todo !== undefined && todo.type !== "wake") return { type: "leaving", todo };
  const waiting = await findInLine(store, key, id, seen);
  if (waiting !== undefined) return { type: "line", waiting, seen };
  const delayed = (await store.receipts.delayed(key)).find((one) => itemId(one.item, key) === id);
  if (delayed !== undefined)
    return { type: "delayed", item: delayed.item, dueAt: delayed.dueAt, sequence: delayed.sequence };
  // It may have moved on between the looks.
  const now = await store.read(key);
  if (now.sequence !== seen.sequence && now.state.items.some((one) => itemId(one, key) === id))
    return await locate(store, key, id);
  return { type: "nowhere" };
}

async function findInLine(store: KeyStore, key: string, id: string, { state }: Seen): Promise<Waiting | undefined> {
  for (let level = 0; level < store.levels; level += 1) {
    for await (const waiting of store.line(key, level, state.taken[level] ?? 0))
      if (itemId(waiting.item, key) === id && !state.cut.includes(waiting.sequence)) return waiting;
  }
  return undefined;
}

export async function keyOfItem(store: KeyStore, id: string): Promise<string | undefined> {
  const given = keyOfId(id);
  if (given !== undefined) return given;
  const found = await store.receipts.find(id);
  return found === undefined ? undefined : tokenOf(found.receipt.key);
}

/** Whether an item that was accepted, and is nowhere now, went with a stream that somebody deleted. */
export async function isGone(store: KeyStore, id: string): Promise<boolean> {
  const found = await store.receipts.find(id);
  if (found === undefined || found.outcome !== undefined || found.receipt.pending === true) return false;
  const info = await store.js.streamInfo(store.subjects.stream);
  return info !== undefined && Date.parse(info.created) > found.receipt.at;
}

export async function cancel(store: KeyStore, id: string): Promise<CancelResult> {
  if ((await store.receipts.letter(id)) !== undefined) return "ended";
  const found = await store.receipts.find(id);
  if (found?.outcome !== undefined) return "ended";
  const key = found === undefined ? keyOfId(id) : tokenOf(found.receipt.key);
  if (key === undefined) return "missing";
  for (;;) {
    const place = await locate(store, key, id);
    switch (place.type) {
      case "nowhere":
        return (await store.receipts.find(id))?.outcome === undefined ? "missing" : "ended";
      case "leaving":
        await store.perform(key, { ...NOTHING, todo: [place.todo] });
        return place.todo.type === "later" ? await cancel(store, id) : "ended";
      case "delayed":
        if (!(await store.receipts.takeBack({ ...place, key }))) continue;
        await conclude(store, key, place.item);
        return "cancelled";
      case "line": {
        const cancelled = await cancelInLine(store, key, place.waiting);
        if (cancelled === undefined) continue;
        return cancelled;
      }
      case "state": {
        const result = await cancelInState(store, key, id);
        if (result === undefined) continue;
        return result;
      }
    }
  }
}

async function conclude(store: KeyStore, key: string, item: KeyItem): Promise<void> {
  for (const todo of ended(item, cancelledNow(store, item))) await store.receipts.perform(todo, key);
}

function withoutCancelled(store: KeyStore, state: KeyState, item: KeyItem): KeyState {
  const todo = [...state.todo, ...ended(item, cancelledNow(store, item))];
  return { ...state, items: state.items.filter((one) => one !== item), todo };
}

function cancelledNow(store: KeyStore, item: KeyItem): Outcome {
  return { state: "cancelled", at: store.clock.wall(), attempt: item.attempts };
}

/** The state says that it is cut, in one write: whoever has the key either took it before, or never will. */
async function cancelInLine(
  store: KeyStore,
  key: string,
  { sequence, item }: Waiting,
): Promise<CancelResult | undefined> {
  const written = await store.change(key, ({ state }) => {
    const gone = state.kind === "idle" || (state.taken[item.level] ?? 0) >= sequence || state.cut.includes(sequence);
    if (gone) return undefined;
    const announced = state.kind === "ready" ? STAYS_ANNOUNCED : 0;
    return {
      ...state,
      announced,
      more: true,
      cut: [...state.cut, sequence],
      todo: [...state.todo, ...ended(item, cancelledNow(store, item))],
    };
  });
  return written === undefined ? undefined : "cancelled";
}

async function cancelInState(store: KeyStore, key: string, id: string): Promise<CancelResult | undefined> {
  let result: CancelResult | undefined;
  const isIt = (item: KeyItem): boolean => itemId(item, key) === id;
  const settled = await store.readSettled(key, ({ state }) => state.items.slice(1).some(isIt));
  await store.change(key, ({ state, sequence }) => {
    result = undefined;
    if (sequence !== settled.sequence) return undefined;
    const index = state.items.findIndex(isIt);
    const item = state.items[index];
    if (item === undefined) return undefined;
    if (state.kind === "running" && index === 0) {
      if (state.lease === undefined) return undefined;
      result = "requested";
      return { ...state, lease: { ...state.lease, cancelRequested: true } };
    }
    if (state.lease === undefined) return undefined;
    result = "cancelled";
    return withoutCancelled(store, state, item);
  });
  if (result !== undefined) return result;
  // Nobody has the key: it has to look for its next item.
  const written = await store.letGo(key, ({ state }) => {
    const item = state.items.find(isIt);
    if (item === undefined || state.lease !== undefined) return undefined;
    return withoutCancelled(store, state, item);
  });
  return written === undefined ? undefined : "cancelled";
}

export async function pauseKey(store: KeyStore, name: string, paused: boolean): Promise<void> {
  const key = tokenOf(name);
  if (paused) {
    const written = await store.change(key, ({ state }) => {
      if (state.paused) return undefined;
      return state.lease === undefined ? { ...state, kind: "parked", paused, more: true } : { ...state, paused };
    });
    // Whoever has the key may not know yet.
    if (written !== undefined) await store.readSettled(key, ({ state }) => state.items.length > 1);
    return;
  }
  const kept = await store.change(key, ({ state }) =>
    state.paused && state.lease !== undefined ? { ...state, paused } : undefined,
  );
  if (kept !== undefined) return;
  await store.letGo(key, ({ state }) => (state.paused && state.lease === undefined ? { ...state, paused } : undefined));
}

export async function revive(store: KeyStore, submitter: Submitter, { ids, action }: ReviveRequest): Promise<number> {
  let count = 0;
  if (ids !== undefined) {
    for (const id of new Set(ids)) {
      const letter = await store.receipts.letter(id);
      if (letter !== undefined && (await reviveOne(store, submitter, letter, action))) count += 1;
    }
    return count;
  }
  for (let after = 0; ;) {
    const letters = await store.receipts.letters(after, PAGE);
    const last = letters.at(-1);
    if (last === undefined) return count;
    for (const letter of letters) if (await reviveOne(store, submitter, letter, action)) count += 1;
    after = last.sequence;
  }
}

async function reviveOne(
  store: KeyStore,
  submitter: Submitter,
  letter: DeadLetter,
  action: "retry" | "drop",
): Promise<boolean> {
  const { item, id, key: name, at, failure, sequence } = letter;
  const key = tokenOf(name);
  if (action === "drop") {
    if (!(await store.receipts.removeLetter(sequence))) return false;
    if (item.keepMs > 0)
      await store.receipts.conclude(
        id,
        name,
        item,
        { state: "dead", at, attempt: item.attempts, failure },
        { again: true },
      );
    return true;
  }
  // A new item under the old id: what was said of the old one can be said again by somebody who is late.
  const revived = { ...item, id, unique: store.nonce(), attempts: 0, place: 0, dueAt: undefined };
  if (item.keepMs > 0) await store.receipts.reopen(id, name, revived);
  await submitter.arrive(key, { item: revived, front: false });
  return await store.receipts.removeLetter(sequence);
}

/** A back-off is over, or nearly: what waits on the key is weighed again. */
export async function lookAgain(store: KeyStore, key: string, atLeast = 0): Promise<void> {
  await store.letGo(key, ({ state }) => (state.kind === "parked" && !state.paused ? state : undefined), atLeast);
}
