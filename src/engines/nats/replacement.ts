/** Mode latest: an item takes the place of everything that waits. */
import { ended } from "./endings.ts";
import type { KeyStore } from "./key-store.ts";
import { itemId } from "./receipts.ts";
import type { Remembered } from "./remembered.ts";
import { free, NO_HEADS, STAYS_ANNOUNCED, takeAll } from "./rules.ts";
import { coveredOf, type KeyItem, type KeyState, type Seen, type Waiting } from "./state.ts";

/** Gives the ids of what was replaced. */
export async function replaceWaiting(
  store: KeyStore,
  remembered: Remembered,
  key: string,
  item: KeyItem | undefined,
  now: number,
): Promise<readonly string[]> {
  let before: readonly KeyItem[] = [];
  let written: Seen | undefined;
  for (;;) {
    let closing = false;
    written = await store.change(key, async ({ state }) => {
      closing = false;
      // Another submission of the same id may have been faster: then this one changes nothing.
      if (item !== undefined && (await isOvertaken(store, item))) return undefined;
      const line = await lineOf(store, key, state);
      const leased = state.items.slice(0, coveredOf(state));
      before = [...state.items.slice(leased.length), ...line.map(({ item: waiting }) => waiting)];
      const todo = before.flatMap((old) => ended(old, { state: "replaced", at: now, attempt: old.attempts }));
      const items = item === undefined ? leased : [...leased, item];
      // Out of the line by the same write that puts the new one in: whoever has the key cannot have taken them meanwhile.
      const base = { ...takeAll(state, line), items, todo: [...state.todo, ...todo] };
      if (state.lease !== undefined) return base;
      const next = free(base, items, NO_HEADS, store.levels, now);
      // Nobody may join in silence a key that is about to be idle.
      closing = next.kind === "idle" && state.more === true;
      return closing ? { ...state, announced: STAYS_ANNOUNCED, more: "closing" } : next;
    });
    if (!closing) break;
  }
  remembered.delete(key);
  if (written === undefined) return [];
  const delayed: KeyItem[] = [];
  for (const one of await store.receipts.delayed(key)) {
    if (one.item.unique === item?.unique) continue;
    const todo = ended(one.item, { state: "replaced", at: now, attempt: one.item.attempts });
    if (await store.receipts.endDelayed(one, todo)) delayed.push(one.item);
  }
  const waiting = before.toSorted((a, b) => a.level - b.level || a.place - b.place);
  return [...waiting, ...delayed].map((old) => itemId(old, key));
}

/** Whether the id of an item that has no place yet stands for another by now. */
async function isOvertaken(store: KeyStore, { id, unique }: KeyItem): Promise<boolean> {
  if (id === undefined) return false;
  const found = await store.receipts.find(id);
  return found !== undefined && found.receipt.unique !== unique;
}

async function lineOf(store: KeyStore, key: string, { taken, more, cut }: KeyState): Promise<readonly Waiting[]> {
  const line: Waiting[] = [];
  if (more === false) return line;
  for (let level = 0; level < store.levels; level += 1) {
    for await (const waiting of store.line(key, level, taken[level] ?? 0))
      if (!cut.includes(waiting.sequence)) line.push(waiting);
  }
  return line;
}
