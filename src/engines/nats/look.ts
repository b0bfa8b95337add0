/**
 * A look at the line of a key that carries nothing any more, by the one who has it: what goes next, and what stands behind that at its
 * level. To look for one item after another costs more than to write several again, so those behind it are taken along.
 */
import type { KeyStore } from "./key-store.ts";
import { type Heads, type Look, MOST_TAKEN, NO_HEADS, NO_LOOK } from "./rules.ts";
import type { KeyState } from "./state.ts";

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
