import type { Accepted } from "../../engine/port.ts";
import { assignedId } from "./assigned-id.ts";
import { isRemembered } from "./items.ts";
import { IDLE, type KeyRow, LEASED, READY, removeHead } from "./key-row.ts";
import type { SubmitAnswer, SubmitEntry, SubmitGroup, SubmitTerms } from "./messages.ts";
import type { Parts } from "./parts.ts";
import type { QueueRow } from "./queue-table.ts";

interface Destination {
  readonly queue: QueueRow;
  readonly level: number;
  readonly terms: SubmitTerms;
}

/** Accepts a group of items that share their terms. */
export function submitGroup(parts: Parts, [terms, entries]: SubmitGroup): readonly SubmitAnswer[] {
  if (!parts.tx.queues.has(terms.queue)) return entries.map(() => ["QUEUE", []]);
  const queue = parts.tx.queues.find(terms.queue);
  const level = queue.levels.indexOf(terms.level);
  const to = { queue, level, terms };
  return entries.map((entry) => submit(parts, to, entry));
}

/** Accepts one item, or says why not. The order of the checks is part of the contract: a known id comes first. */
function submit(parts: Parts, to: Destination, entry: SubmitEntry): SubmitAnswer {
  const { queue, level, terms } = to;
  const { tx, items, receipts, line } = parts;
  const { mode, keepMs } = terms;
  const [name, body, id, headers] = entry;
  const first = id === undefined ? undefined : receipts.get(queue, id, tx.wall);
  if (id !== undefined && first !== undefined) return accepted(queue, { ...first, id });
  if (level === -1) return ["LEVEL", queue.levels];
  let key = tx.keys.find(queue.id, name);
  if (mode === "strict" && key !== undefined && isBusy(key)) return ["KEY_BUSY", []];
  const size = key === undefined ? 0 : key.waiting + key.delayed;
  if (mode === "fifo" && size >= terms.keyLimit) return ["KEY_FULL", []];
  const replaces = mode === "latest" && key !== undefined && size >= key.covered;
  if (!replaces && waitingIn(queue) >= terms.queueLimit) return ["QUEUE_FULL", []];
  const replaced = replaces && key !== undefined ? replaceWaiting(parts, to, key) : undefined;
  key ??= tx.makeKey(queue, name);

  const seq = tx.next();
  const item = { seq, key: key.id, level, id, type: terms.type, body, headers, submitted: tx.wall, keep: keepMs };
  items.add(item);
  if (isRemembered(item)) receipts.add(queue, item, name);
  if (terms.delayMs === 0) line.arrive(queue, key, seq, level, false);
  else {
    items.addDelayed(seq, key.id, tx.wall + terms.delayMs, false);
    tx.countDelayed(queue, key, 1);
    tx.keys.saveLength(key);
  }
  if (replaced === undefined) return seq;
  if (replaced.place !== undefined) {
    // The newest state stands where the older one stood, so that frequent updates do not push a key back for ever.
    key.place = replaced.place;
    key.readyAt = replaced.readyAt;
  }
  return accepted(queue, { id: id ?? assignedId(seq), key: name, level, submitted: tx.wall }, replaced.ids);
}

interface Replaced {
  readonly ids: readonly string[];
  /** Where the replaced head stood among the ready keys, if the newer one may stand there. */
  readonly place: number | undefined;
  readonly readyAt: number;
}

/** Every item of the key that no lease covers gives way to the newer one. */
function replaceWaiting(parts: Parts, { queue, level, terms }: Destination, key: KeyRow): Replaced {
  const { tx, items, line, endings } = parts;
  const ids: string[] = [];
  const { readyAt } = key;
  let place: number | undefined;
  if (key.head !== 0 && (key.state !== LEASED || key.held)) {
    if (key.level === level && terms.delayMs === 0 && key.state === READY) place = key.place;
    ids.push(items.get(key.head)?.id ?? assignedId(key.head));
    endings.endHead(queue, key, { state: "replaced" });
    tx.count(queue, key, key.level, -1);
    removeHead(key);
    if (key.state !== LEASED) key.state = IDLE;
  }
  for (const seq of [...line.empty(key), ...items.delayedOf(key.id)]) {
    const item = items.get(seq);
    // A link without an item was cancelled before.
    if (item === undefined) continue;
    ids.push(item.id ?? assignedId(seq));
    endings.end(queue, seq, { state: "replaced" });
    if (items.removeDelayed(seq)) tx.countDelayed(queue, key, -1);
    else tx.count(queue, key, item.level, -1);
  }
  tx.keys.save(key);
  return { ids, place, readyAt };
}

function isBusy(key: KeyRow): boolean {
  return key.state !== IDLE || key.waiting + key.delayed > 0;
}

function waitingIn(queue: QueueRow): number {
  let waiting = queue.delayed;
  for (const count of queue.waiting) waiting += count;
  return waiting;
}

interface AcceptedItem {
  readonly id: string;
  readonly key: string;
  readonly level: number;
  readonly submitted: number;
}

/** Without a list of those that it replaced: it is known already. */
function accepted(
  queue: QueueRow,
  { id, key, level, submitted }: AcceptedItem,
  replaced?: readonly string[],
): Accepted {
  const duplicate = replaced === undefined;
  return { id, key, level: queue.levels[level] ?? "", at: submitted, duplicate, replaced: replaced ?? [] };
}
