import { attemptOf } from "../../engine/attempts.ts";
import type { Ending, SettleResult } from "../../engine/port.ts";
import { endLease, letGo } from "./due.ts";
import { type KeyRow, LEASED } from "./key-row.ts";
import type { LeaseTuple, Requests, SettleTuple } from "./messages.ts";
import type { Parts } from "./parts.ts";
import { endBefore, endOf, uncover } from "./run.ts";

/** The positions of those that are not the current lease of their key. */
export function lapsed(parts: Parts, leases: readonly LeaseTuple[]): readonly number[] {
  return leases.flatMap((lease, position) => (current(parts, lease) === undefined ? [position] : []));
}

/** The one place where a lease is compared: same fence, still leased, not run out (G2). */
function current(parts: Parts, [keyId, fence]: LeaseTuple): KeyRow | undefined {
  const key = parts.tx.keys.get(keyId);
  if (key === undefined || key.state !== LEASED || key.fence !== fence || key.at <= parts.tx.monotonic)
    return undefined;
  return key;
}

export function renew(parts: Parts, renewal: Requests["renew"][number]): "lost" | "renewed" | "cancel" {
  const [lease, leaseMs, progress, ended] = renewal;
  const { tx } = parts;
  const key = current(parts, lease);
  if (key === undefined) return "lost";
  key.granted = tx.monotonic;
  key.at = tx.monotonic + leaseMs;
  if (ended !== undefined) {
    endBefore(parts, key, ended);
    uncover(parts, key);
  }
  if (progress !== undefined) key.progress = progress;
  tx.keys.save(key);
  return key.cancel ? "cancel" : "renewed";
}

/** Returns the positions of those that were lost. */
export function settleAll(parts: Parts, settlements: Requests["settle"]): readonly number[] {
  return settlements.flatMap((settlement, position) => (settle(parts, settlement) === "lost" ? [position] : []));
}

const DONE: Ending = { type: "done" };

function settle(parts: Parts, [keyId, fence, ending = DONE, ended = []]: SettleTuple): SettleResult {
  const key = current(parts, [keyId, fence]);
  if (key === undefined) return "lost";
  const isNew = endBefore(parts, key, ended);
  uncover(parts, key);
  if (!key.held && ending.type !== "release") key.alone = Math.max(0, key.alone - 1);
  if (key.held) endLease(parts, key);
  else if (ending.type === "release") release(parts, key, ending, isNew);
  else if (ending.type === "retry" && !key.cancel) retry(parts, key, ending);
  else finish(parts, key, ending);
  return "settled";
}

/** The attempt is given back: the item was not tried to its end. One that was counted just now was not begun, and nothing is noted of it. */
function release(parts: Parts, key: KeyRow, ending: Extract<Ending, { type: "release" }>, isNew: boolean): void {
  if (!key.cancel && !isNew) parts.endings.note(key, (attempt) => attemptOf(ending, attempt));
  if (!key.cancel || isNew) key.attempt -= 1;
  endLease(parts, key);
}

function retry(parts: Parts, key: KeyRow, ending: Extract<Ending, { type: "retry" }>): void {
  const { tx, items, line, endings } = parts;
  const { delayMs, place } = ending;
  endings.note(key, (attempt) => attemptOf(ending, attempt));
  const due = delayMs === 0 ? 0 : tx.wall + delayMs;
  if (place === "keep" || due === 0) {
    items.setDue(key.head, due);
    key.gaps = true;
    key.place = tx.next();
    return endLease(parts, key);
  }
  const queue = tx.queues.get(key.queue);
  items.addAttempts(key.head, key.attempt);
  items.addDelayed(key.head, key.id, due, true);
  tx.countDelayed(queue, key, 1);
  queue.running -= 1;
  letGo(tx, key);
  line.promote(key);
}

function finish(parts: Parts, key: KeyRow, ending: Ending): void {
  const { tx, line, endings } = parts;
  const queue = tx.queues.touch(tx.queues.get(key.queue));
  queue.running -= 1;
  if (ending.type === "dead") endings.bury(queue, key, ending.failure);
  else endings.endHead(queue, key, ending.type === "done" ? endOf(ending) : { state: "cancelled" });
  letGo(tx, key);
  line.promote(key);
}
