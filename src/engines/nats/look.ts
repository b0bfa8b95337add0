/**
 * A look at the line of a key that carries nothing any more, by the one who has it: what goes next, and what stands behind that at its
 * level. To look for one item after another costs more than to write several again, so those behind it are taken along.
 */
import type { KeyStore } from "./key-store.ts";
import { type Heads, NO_HEADS, sizeOf, takeAll, totalOf } from "./rules.ts";
import type { KeyState, Waiting } from "./state.ts";

/** Items of a line that are taken out of it at once. */
const MOST_TAKEN = 32;
/** Of what is taken along: it is written again and again. */
const MOST_BYTES = 32_768;

export interface Look {
  readonly heads: Heads;
  /** What stands behind the head of one level, in order. */
  readonly behind: readonly Waiting[];
  /** There was nothing else in the line. */
  readonly isAll: boolean;
}

export const NO_LOOK: Look = { heads: NO_HEADS, behind: [], isAll: false };

/** @param likely the level that most likely has the next item: of the others only the head is looked at, and only if it matters */
export async function lookAt(store: KeyStore, key: string, state: KeyState, likely: number): Promise<Look> {
  // Followers of the leader may answer a look for several: there they would be found one by one, and nothing gained.
  if (state.more !== true || store.js.isReplicated(store.subjects.stream))
    return { ...NO_LOOK, heads: await store.heads(key, state) };
  const headsOf = (levels: readonly number[]): Promise<Heads> =>
    Promise.all(levels.map((level) => store.head(key, level, state)));
  const levels = Array.from({ length: store.levels }, (_, level) => level);
  const [found, urgent] = await Promise.all([
    store.few(key, likely, state.taken[likely] ?? 0, MOST_TAKEN),
    headsOf(levels.slice(0, likely)),
  ]);
  const isEnd = found.length < MOST_TAKEN;
  const [head, ...behind] = found.filter(({ sequence }) => !state.cut.includes(sequence));
  const own = head === undefined && !isEnd ? await store.head(key, likely, state) : head;
  const rest = own === undefined || isEnd ? await headsOf(levels.slice(likely + 1)) : NO_HEADS;
  const isAll = isEnd && [...urgent, ...rest].every((other) => other === undefined);
  return { heads: [...urgent, own, ...rest], behind, isAll };
}

/** What stands in line behind the item that was just taken out of it, by whoever does not have the key. */
export async function lookBehind(store: KeyStore, key: string, { items, taken, cut }: KeyState): Promise<Look> {
  const level = items[0]?.level ?? 0;
  if (store.js.isReplicated(store.subjects.stream)) return NO_LOOK;
  const behind = await store.few(key, level, taken[level] ?? 0, MOST_TAKEN - 1);
  return { ...NO_LOOK, behind: behind.filter(({ sequence }) => !cut.includes(sequence)) };
}

/** The state with what stands behind its first item, which was just taken out of the line; and whether that is all there was. */
export function takeAlong(
  state: KeyState,
  { behind, isAll }: Look,
  mostBytes: number,
): { readonly state: KeyState; readonly isAll: boolean } {
  const level = state.items[0]?.level;
  if (behind.some(({ item }) => item.level !== level)) return { state, isAll: false };
  let room = Math.min(MOST_BYTES, mostBytes - totalOf(state));
  const count = behind.findIndex(({ item }) => (room -= sizeOf(item)) < 0);
  const line = count === -1 ? behind : behind.slice(0, count);
  const items = [...state.items, ...line.map(({ item }) => item)];
  return { state: { ...takeAll(state, line), items }, isAll: isAll && count === -1 };
}
