/**
 * Where an item is. What moves is written to its new place before it is removed from its old one, so a look along its way finds it, in
 * this order:
 *
 *   dead letter ──revived──▶ delayed ──▶ due ──▶ line ──▶ state ──▶ outcome
 *        ▲                      ▲                           │
 *        └──────── died ────────┴──── steps aside ──────────┘
 *
 * The ways back begin at the state, and change it; so does everything that comes into it. So a look that did not find the item counts only if the
 * state, which is read first and last, has stayed; otherwise it is looked for again.
 */
import { pause } from "../../domain/clock.ts";
import type { Outcome } from "../../engine/port.ts";
import { IDLE_SECONDS, type KeyStore } from "./key-store.ts";
import { type DeadLetter, type FoundReceipt, itemId, keyOfId } from "./receipts.ts";
import { tokenOf } from "./key-token.ts";
import type { KeyItem, Seen, Todo, Waiting } from "./state.ts";

/** An item would have to run and step aside within each of so many looks. Whoever asks for one that is forgotten must not look for ever. */
const MOST_LOOKS = 8;
/** An item that was accepted, has not ended, and is nowhere: it is being cancelled or replaced right now, and its outcome comes. */
const ENDING_MS = 500;
const ENDING_STEP_MS = 10;
/** A key without a state may have had one that vanished, if a look took longer than this. */
const VANISHING_MS = IDLE_SECONDS * 800;

export type Place =
  | { readonly type: "dead"; readonly letter: DeadLetter }
  | { readonly type: "ended"; readonly found: FoundReceipt; readonly outcome: Outcome }
  | {
      readonly type: "delayed";
      readonly key: string;
      readonly item: KeyItem;
      readonly dueAt: number;
      readonly sequence: number;
    }
  /** Its time has come, and nobody has brought it to its key yet. */
  | { readonly type: "due"; readonly key: string; readonly item: KeyItem }
  | { readonly type: "line"; readonly key: string; readonly waiting: Waiting; readonly seen: Seen }
  | {
      readonly type: "state";
      readonly key: string;
      readonly item: KeyItem;
      readonly index: number;
      readonly seen: Seen;
    }
  /** It has just ended, or steps aside; what is to be remembered of that is being written. */
  | {
      readonly type: "leaving";
      readonly key: string;
      readonly todo: Exclude<Todo, { readonly type: "wake" }>;
      readonly seen: Seen;
    }
  /** `wasAccepted`: it has not ended either, as far as anybody knows. Whoever was about to end it may have died. */
  | { readonly type: "nowhere"; readonly wasAccepted: boolean };

/** Where an item is now. Nowhere: it was never accepted, or is forgotten, or somebody deleted the stream that it was in. */
export async function locate(store: KeyStore, id: string): Promise<Place> {
  for (let waitedMs = 0; ; waitedMs += ENDING_STEP_MS) {
    const over = await remembered(store, id);
    if (over.place !== undefined) return over.place;
    const key = over.found === undefined ? keyOfId(id) : tokenOf(over.found.receipt.key);
    const place = key === undefined ? undefined : await locateOn(store, key, id);
    if (place !== undefined) return place;
    const wasAccepted = await lives(store, id);
    if (waitedMs >= ENDING_MS || !wasAccepted) return { type: "nowhere", wasAccepted };
    await pause(store.clock, ENDING_STEP_MS);
  }
}

/** Whether an item that was accepted, and is nowhere now, went with a stream that somebody deleted. */
export async function isGone(store: KeyStore, id: string): Promise<boolean> {
  const found = await store.receipts.find(id);
  if (found === undefined || found.outcome !== undefined || found.receipt.pending === true) return false;
  const info = await store.js.streamInfo(store.subjects.stream);
  return info !== undefined && Date.parse(info.created) > found.receipt.at;
}

/** It was accepted, has not ended, and is not gone. */
async function lives(store: KeyStore, id: string): Promise<boolean> {
  const found = await store.receipts.find(id);
  return found !== undefined && found.receipt.pending !== true && !(await isGone(store, id));
}

async function locateOn(store: KeyStore, key: string, id: string): Promise<Place | undefined> {
  let seen = await store.read(key);
  for (let looks = 1; ; looks += 1) {
    const begun = store.clock.monotonic();
    const place = inState(key, id, seen) ?? (await besideState(store, key, id, seen));
    if (place !== undefined) return place;
    const now = await store.read(key);
    const mayHaveVanished = now.sequence === 0 && store.clock.monotonic() - begun > VANISHING_MS;
    const hasStayed = now.sequence === seen.sequence && !mayHaveVanished;
    if (hasStayed || looks === MOST_LOOKS) return inState(key, id, now);
    seen = now;
  }
}

function inState(key: string, id: string, seen: Seen): Place | undefined {
  const { items, todo } = seen.state;
  const index = items.findIndex((item) => itemId(item, key) === id);
  const item = items[index];
  if (item !== undefined) return { type: "state", key, item, index, seen };
  for (const entry of todo)
    if (entry.type !== "wake" && itemId(entry.item, key) === id) return { type: "leaving", key, todo: entry, seen };
  return undefined;
}

/** In the order in which an item moves. */
async function besideState(store: KeyStore, key: string, id: string, seen: Seen): Promise<Place | undefined> {
  const letter = await store.receipts.letter(id);
  if (letter !== undefined) return { type: "dead", letter };
  const delayed = (await store.receipts.delayed(key)).find(({ item }) => itemId(item, key) === id);
  if (delayed !== undefined) return { type: "delayed", ...delayed };
  for await (const { item } of store.receipts.due(store.subjects.due(key)))
    if (itemId(item, key) === id) return { type: "due", key, item };
  const waiting = await inLine(store, key, id, seen);
  if (waiting !== undefined) return { type: "line", key, waiting, seen };
  // One that was delayed may have been cancelled or replaced, which does not change the state.
  return (await remembered(store, id)).place;
}

async function remembered(
  store: KeyStore,
  id: string,
): Promise<{ readonly place: Place | undefined; readonly found: FoundReceipt | undefined }> {
  const [letter, found] = await Promise.all([store.receipts.letter(id), store.receipts.find(id)]);
  if (letter !== undefined) return { place: { type: "dead", letter }, found };
  if (found?.outcome === undefined) return { place: undefined, found };
  return { place: { type: "ended", found, outcome: found.outcome }, found };
}

async function inLine(store: KeyStore, key: string, id: string, { state }: Seen): Promise<Waiting | undefined> {
  for (let level = 0; level < store.levels; level += 1) {
    for await (const waiting of store.line(key, level, state.taken[level] ?? 0))
      if (itemId(waiting.item, key) === id && !state.cut.includes(waiting.sequence)) return waiting;
  }
  return undefined;
}
