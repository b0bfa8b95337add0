import type { Accepted } from "../../engine/port.ts";
import { assignedId, type ItemRow } from "./items.ts";
import { IDLE, type KeyRow, LEASED } from "./key-row.ts";
import type { RefusalTuple, SubmissionTuple } from "./messages.ts";
import type { Parts } from "./parts.ts";
import type { QueueRow } from "./transaction.ts";

/** Accepts one item, or says why not. The order of the checks is part of the contract: a known id comes first. */
export function submit(parts: Parts, submission: SubmissionTuple): Accepted | RefusalTuple {
  const { tx, items, line } = parts;
  const [queueName, keyName, id, levelName, type, body, headers, delayMs, mode, keyLimit, queueLimit, keepMs] = submission;
  const queue = tx.queue(queueName);
  const level = queue.levels.indexOf(levelName);
  if (level === -1) return ["LEVEL", queue.levels.join(", ")];
  if (id !== undefined) {
    const first = items.receipt(queue, id, tx.wall);
    if (first !== undefined) {
      return accepted(queue, id, first.key, first.level, first.submitted, true, []);
    }
  }
  let key = tx.keyByName(queue, keyName);
  if (mode === "strict" && key !== undefined && isBusy(key)) return ["KEY_BUSY", ""];
  const size = key === undefined ? 0 : key.waiting + key.delayed;
  if (mode === "fifo" && size >= keyLimit) return ["KEY_FULL", ""];
  const grows = mode !== "latest" || size === 0;
  if (grows && waitingIn(queue) >= queueLimit) return ["QUEUE_FULL", ""];
  const replaced = mode === "latest" && key !== undefined && size > 0 ? replaceWaiting(parts, queue, key, level, delayMs === 0) : NONE;
  key ??= tx.makeKey(queue, keyName);

  const seq = tx.next();
  const item: ItemRow = {
    seq, key: key.id, level, id, payload: { type, body }, headers, submitted: tx.wall, keep: keepMs, attempt: 0, due: 0,
  };
  items.add(item);
  if (keepMs > 0) items.addReceipt(queue, item, keyName);
  if (delayMs > 0) {
    items.addDelayed(seq, key.id, tx.wall + delayMs, false);
    tx.touch(queue).delayed += 1;
    key.delayed += 1;
    tx.saveLength(key);
    tx.news = true;
  } else {
    line.arrive(queue, key, seq, level, false);
    if (replaced.place !== undefined) {
      // The newest state stands where the older one stood, so that frequent updates do not push a key back for ever.
      key.place = replaced.place;
      key.readyAt = replaced.readyAt;
    }
  }
  return accepted(queue, id ?? assignedId(seq), keyName, level, tx.wall, false, replaced.ids);
}

interface Replaced {
  readonly ids: readonly string[];
  /** Where the replaced head stood among the ready keys, if the newer one may stand there. */
  readonly place: number | undefined;
  readonly readyAt: number;
}

const NONE: Replaced = { ids: [], place: undefined, readyAt: 0 };

/** Every item of the key that does not run gives way to the newer one. */
function replaceWaiting(parts: Parts, queue: QueueRow, key: KeyRow, level: number, arrivesNow: boolean): Replaced {
  const { tx, items, line, endings } = parts;
  const ids: string[] = [];
  let place: number | undefined;
  const end = (seq: number, attempt: number): void => {
    const item = items.get(seq);
    // A link without an item was cancelled before.
    if (item === undefined) return;
    ids.push(item.id ?? assignedId(seq));
    endings.end(queue, seq, attempt, { state: "replaced" });
    if (items.removeDelayed(seq)) {
      key.delayed -= 1;
      tx.touch(queue).delayed -= 1;
    } else {
      key.waiting -= 1;
      tx.touch(queue).waiting[item.level] = (queue.waiting[item.level] ?? 0) - 1;
    }
  };
  const readyAt = key.readyAt;
  const headWaits = key.head !== 0 && (key.state !== LEASED || key.held);
  if (headWaits) {
    if (key.level === level && arrivesNow && key.state !== LEASED && key.attempt === 0) place = key.place;
    end(key.head, key.attempt);
    key.head = 0;
    key.attempt = 0;
    if (key.state !== LEASED) key.state = IDLE;
  }
  for (const seq of line.empty(key)) end(seq, 0);
  for (const seq of items.delayedOf(key.id)) end(seq, 0);
  tx.save(key);
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

function accepted(
  queue: QueueRow, id: string, key: string, level: number, at: number, duplicate: boolean, replaced: readonly string[],
): Accepted {
  return { id, key, level: queue.levels[level] ?? "", at, duplicate, replaced };
}
