import type { EndedItem } from "../../engine/port.ts";
import { assignedId } from "./assigned-id.ts";
import type { KeyRow } from "./key-row.ts";
import type { EndedEntry } from "./messages.ts";
import type { EndOf, Parts } from "./parts.ts";

/** Ends what its holder left behind in a run. True: there was something, so that the attempt of the head was counted just now. */
export function endBefore(parts: Parts, key: KeyRow, ended: readonly EndedEntry[]): boolean {
  const { tx, items, line, endings } = parts;
  const queue = tx.queues.get(key.queue);
  let isNew = false;
  for (const one of ended) {
    if (line.behind(key).length === 0) break;
    key.granting ??= items.get(key.head);
    // Reported before: only the holder ends what its lease covers.
    if ((key.granting?.id ?? assignedId(key.head)) !== (typeof one === "string" ? one : one.id)) continue;
    endings.endHead(queue, key, typeof one === "string" ? DONE : endOf(one.ending));
    line.advance(queue, key);
    isNew = true;
  }
  return isNew;
}

/** What the lease covered and did not begin waits as before. A cancel that its worker never heard of is carried out. The caller saves the key. */
export function uncover({ tx, items, endings }: Parts, key: KeyRow): void {
  if (key.covered === 1) return;
  const queue = tx.queues.get(key.queue);
  for (const seq of key.marked) {
    // What is gone must not keep a lease from ending.
    if (items.due(seq) === undefined) continue;
    endings.end(queue, seq, { state: "cancelled" });
    tx.count(queue, key, key.level, -1);
    key.gaps = true;
  }
  key.covered = 1;
  key.marked = [];
  key.behind = undefined;
}

const DONE: EndOf = { state: "done" };

export function endOf({ type, ...rest }: EndedItem["ending"]): EndOf {
  return { state: type, ...rest };
}
