/**
 * How a key changes, as pure functions from one state to the next. Who writes it, and what happens when somebody else was
 * faster, is not known here.
 */
import { bodySize } from "../../domain/payload.ts";
import { coveredOf, type KeyItem, type KeyState, NOTHING, type StateLease, type Waiting } from "./state.ts";

/** A state that others write again and again carries no more than this; what comes then stands in line. */
const MOST_CARRIED_BYTES = 32_768;
const MOST_CARRIED = 64;
/** Whatever is said of an item beside its payload, its id and its headers. */
const LINE_BYTES = 256;
/** Holds that wait in order; more than this wait as well, in no order. */
const MOST_WANTED = 16;
/** No level of the line is known to have an item. */
const NO_LINE = NOTHING.line;
/** A ready key stays known to consumers by the message that it is known by. */
export const STAYS_ANNOUNCED = -1;

/** The first item in line at each level, if there is one. */
export type Heads = readonly (Waiting | undefined)[];

export const NO_HEADS: Heads = [];

/** Items of a line that are taken out of it at once. */
export const MOST_TAKEN = 32;

/** A look at the line of a key. */
export interface Look {
  readonly heads: Heads;
  /** What stands behind the head of one level, in order. */
  readonly behind: readonly Waiting[];
  /** There was nothing else in the line. */
  readonly isAll: boolean;
}

export const NO_LOOK: Look = { heads: NO_HEADS, behind: [], isAll: false };

type Choice =
  | { readonly type: "item"; readonly item: KeyItem; readonly from: Waiting | undefined }
  | { readonly type: "blocked"; readonly until: number }
  | { readonly type: "none" };

/** The most urgent level first; within it what the state carries, then the line. A back-off blocks its level and those below. */
export function choose(items: readonly KeyItem[], heads: Heads, levels: number, now: number): Choice {
  const carried = mostUrgent(items);
  const from = heads.slice(0, carried?.level ?? levels).find((head) => head !== undefined);
  const item = from?.item ?? carried;
  if (item === undefined) return { type: "none" };
  if (item.dueAt !== undefined && item.dueAt > now) return { type: "blocked", until: item.dueAt };
  return { type: "item", item, from };
}

/** The first of the most urgent. */
function mostUrgent(items: readonly KeyItem[]): KeyItem | undefined {
  let first: KeyItem | undefined;
  for (const item of items) if (item.level < (first?.level ?? Infinity)) first = item;
  return first;
}

/** A key that nobody has any more, with these items and this line, as it stands now: whoever waits to hold it has it next. */
export function free(state: KeyState, items: readonly KeyItem[], heads: Heads, levels: number, now: number): KeyState {
  // A line that was about to end has more after all, unless nothing was found.
  const base: KeyState = { ...state, items, lease: undefined, more: state.more !== false, line: NO_LINE };
  const [first, ...wanted] = state.wanted;
  if (first !== undefined) return { ...base, kind: "held", lease: { ...first, since: now }, wanted };
  if (state.paused) return { ...base, kind: "parked" };
  const choice = choose(items, heads, levels, now);
  switch (choice.type) {
    case "item":
      return {
        ...take(base, choice.item, choice.from),
        kind: "ready",
        announced: 0,
        line: lineOf(state, heads, choice.item, choice.from),
      };
    case "blocked":
      return { ...base, kind: "parked", todo: [...base.todo, { type: "wake", dueAt: choice.until }] };
    case "none":
      return { ...base, kind: "idle", more: false, alone: 0 };
  }
}

/**
 * The most urgent level of the line that still has an item when this one is taken; whether its own level has more is not known. Below
 * what the key carries nobody looked: what was known before is still good, but nothing may join in silence that goes before it.
 */
function lineOf(state: KeyState, heads: Heads, item: KeyItem, from: Waiting | undefined): number {
  const level = heads.findIndex((head) => head !== undefined && head !== from);
  if (level !== -1) return level;
  return from === undefined && state.line !== NO_LINE ? Math.max(state.line, item.level) : NO_LINE;
}

/** The state with this item at its front, out of the line if it came from there. */
function take(state: KeyState, item: KeyItem, from: Waiting | undefined): KeyState {
  const { dueAt: _over, ...rest } = item;
  const items = [{ ...rest, dueAt: undefined }, ...state.items.filter((other) => other !== item)];
  if (from === undefined) return { ...state, items };
  const taken = [...state.taken];
  for (let level = taken.length; level < item.level; level += 1) taken[level] = 0;
  taken[item.level] = from.sequence;
  return { ...state, items, taken, takenLeft: state.takenLeft + 1 };
}

/** The state with these taken out of its line. */
export function takeAll(state: KeyState, line: readonly Waiting[]): KeyState {
  const taken = [...state.taken];
  for (const { sequence, item } of line) {
    for (let level = taken.length; level < item.level; level += 1) taken[level] = 0;
    taken[item.level] = Math.max(taken[item.level] ?? 0, sequence);
  }
  return { ...state, taken, takenLeft: state.takenLeft + line.length };
}

/** The state with what stands behind its first item, which was just taken out of the line; and whether that is all there was. */
export function takeAlong(
  state: KeyState,
  { behind, isAll }: Look,
  mostBytes: number,
): { readonly state: KeyState; readonly isAll: boolean } {
  const level = state.items[0]?.level;
  if (behind.some(({ item }) => item.level !== level)) return { state, isAll: false };
  let room = Math.min(MOST_CARRIED_BYTES, mostBytes - totalOf(state));
  const count = behind.findIndex(({ item }) => (room -= sizeOf(item)) < 0);
  const line = count === -1 ? behind : behind.slice(0, count);
  const items = [...state.items, ...line.map(({ item }) => item)];
  return { state: { ...takeAll(state, line), items }, isAll: isAll && count === -1 };
}

/** The first item starts, and the lease covers up to so many, which are carried one behind the other. */
export function start(state: KeyState, lease: StateLease, most = 1): KeyState {
  const [first, ...rest] = state.items;
  const behind = first === undefined ? [] : runBehind(state, first, rest, most);
  const others = behind.length === 0 ? rest : rest.filter((item) => !behind.includes(item));
  const items = first === undefined ? [] : [{ ...first, attempts: first.attempts + 1 }, ...behind, ...others];
  const covered = behind.length + 1;
  return { ...state, kind: "running", items, lease: { ...lease, covered }, more: state.more !== false };
}

/** The items of the run that may follow its first one: innocent, and equal to it. */
function runBehind({ alone }: KeyState, first: KeyItem, rest: readonly KeyItem[], most: number): readonly KeyItem[] {
  if (most <= 1 || first.attempts > 0 || alone > 0) return [];
  const equal = rest.filter(({ level }) => level === first.level);
  const end = equal.findIndex(({ attempts }) => attempts > 0);
  return equal.slice(0, Math.min(most - 1, end === -1 ? equal.length : end));
}

/** Behind an item that is too big to be written again and again, others stand in line from the beginning. */
export function isBig(item: KeyItem | undefined): boolean {
  return item !== undefined && sizeOf(item) > MOST_CARRIED_BYTES;
}

export function hold(state: KeyState, lease: StateLease): KeyState {
  return { ...state, kind: "held", lease, more: state.more !== false };
}

/** Somebody waits to hold the key, which somebody else has. Undefined: that is known, or too many wait already. */
export function want(state: KeyState, wish: StateLease): KeyState | undefined {
  const isKnown = state.wanted.some(({ nonce }) => nonce === wish.nonce);
  return isKnown || state.wanted.length >= MOST_WANTED ? undefined : { ...state, wanted: [...state.wanted, wish] };
}

/**
 * Whoever waited does so no more. Written also when it is not known, so that a write of theirs that is still on its way comes too
 * late; undefined where nobody can wait.
 */
export function wantNoMore(state: KeyState, { nonce: own }: StateLease): KeyState | undefined {
  return state.lease === undefined
    ? undefined
    : { ...state, wanted: state.wanted.filter(({ nonce }) => nonce !== own) };
}

export type Joining =
  | { readonly type: "write"; readonly state: KeyState }
  /** The state stays; the item goes into the line, on condition that the state has stayed. */
  | { readonly type: "append" };

/** An item arrives. `front`: before those of its level. `bytes`: of what the state carries. `room`: bytes that it may have. */
export function join(
  state: KeyState,
  item: KeyItem,
  front: boolean,
  levels: number,
  now: number,
  bytes: number,
  room: number,
): Joining {
  const [head] = state.items;
  const together = bytes + sizeOf(item);
  const fits = together <= room;
  switch (state.kind) {
    case "idle":
      return { type: "write", state: { ...state, kind: "ready", items: [item] } };
    case "ready":
      // In a line there may be older ones of its level: then it joins them, and the key is looked at again.
      if (
        fits &&
        (head === undefined || (item.level < head.level && state.more === false) || (front && item.level <= head.level))
      )
        return { type: "write", state: { ...state, announced: 0, items: [item, ...state.items] } };
      break;
    case "parked": {
      const choice = choose([...state.items, item], NO_HEADS, levels, now);
      if (fits && !state.paused && (state.more === false || front) && choice.type === "item" && choice.item === item)
        return { type: "write", state: { ...take(state, item, undefined), kind: "ready", announced: 0 } };
      break;
    }
    case "running":
    case "held":
      break;
  }
  return carry(state, item, front, together);
}

/** A busy key takes the item into its own state while there is no line and it is small; then the line begins. */
function carry(state: KeyState, item: KeyItem, front: boolean, bytes: number): Joining {
  const base: KeyState = state.kind === "ready" ? { ...state, announced: STAYS_ANNOUNCED } : state;
  // What a lease covers is not overtaken: perhaps it has begun.
  const first = state.kind === "ready" ? 1 : coveredOf(state);
  if (front) return { type: "write", state: { ...base, items: inserted(state.items, item, first) } };
  if (state.more === true)
    return item.level < state.line && state.kind !== "ready"
      ? { type: "write", state: { ...base, line: item.level } }
      : { type: "append" };
  if (state.more === "closing") return { type: "write", state: { ...base, more: true } };
  return canCarry(state.items.length, bytes)
    ? { type: "write", state: { ...base, items: [...state.items, item] } }
    : { type: "write", state: { ...base, more: true, line: item.level } };
}

/** Whether a key that carries so many may carry one more, with so many bytes in all. */
export function canCarry(count: number, bytes: number): boolean {
  return bytes <= MOST_CARRIED_BYTES && count < MOST_CARRIED;
}

/** Whether an item that joined the line of a key goes before what the key would start with, or would start at all. */
export function lifts({ kind, items, paused }: KeyState, item: KeyItem): boolean {
  const [head] = items;
  return (kind === "ready" || (kind === "parked" && !paused)) && (head === undefined || item.level < head.level);
}

/** Before the others of its level, but never before what runs. */
function inserted(items: readonly KeyItem[], item: KeyItem, from: number): readonly KeyItem[] {
  return [...items.slice(0, from), item, ...items.slice(from)];
}

/** No less than it takes in a message. */
export function sizeOf({ payload: { type, body }, id, headers, tried }: KeyItem): number {
  const bytes = bodySize(body) + 2 * type.length + LINE_BYTES;
  if (id === undefined && headers === undefined && tried === undefined) return bytes;
  return bytes + Buffer.byteLength(JSON.stringify({ id, headers, tried }));
}

export function totalOf({ items }: KeyState): number {
  let total = 0;
  for (const item of items) total += sizeOf(item);
  return total;
}
