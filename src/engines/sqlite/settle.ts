import type { Ending, SettleResult } from "../../engine/port.ts";
import { isOpen } from "./claim.ts";
import { endLease, keep } from "./due.ts";
import { type KeyRow, LEASED } from "./key-row.ts";
import type { LeaseTuple, Requests } from "./messages.ts";
import type { Parts } from "./parts.ts";
import type { Transaction } from "./transaction.ts";

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

export function renew(
  parts: Parts,
  lease: LeaseTuple,
  leaseMs: number,
  progress: number | undefined,
): "lost" | "renewed" | "cancel" {
  const { tx } = parts;
  const key = current(parts, lease);
  if (key === undefined) return "lost";
  key.granted = tx.monotonic;
  key.at = tx.monotonic + leaseMs;
  if (progress !== undefined) key.progress = progress;
  tx.keys.save(key);
  return key.cancel ? "cancel" : "renewed";
}

/** Returns the positions of those that were lost. */
export function settleAll(parts: Parts, request: Requests["settle"]): readonly number[] {
  const lost: number[] = [];
  if ("entries" in request) {
    for (const [position, [lease, ending]] of request.entries.entries()) {
      if (settle(parts, lease, ending) === "lost") lost.push(position);
    }
    return lost;
  }
  const { done } = request;
  for (let index = 0; index + 1 < done.length; index += 2) {
    const lease: LeaseTuple = [done[index] ?? 0, done[index + 1] ?? 0];
    if (settle(parts, lease, DONE) === "lost") lost.push(index / 2);
  }
  return lost;
}

const DONE: Ending = { type: "done" };

function settle(parts: Parts, lease: LeaseTuple, ending: Ending): SettleResult {
  const key = current(parts, lease);
  if (key === undefined) return "lost";
  if (key.held || ending.type === "release") release(parts, key);
  else if (ending.type === "retry" && !key.cancel) retry(parts, key, ending);
  else finish(parts, key, ending);
  return "settled";
}

/** The attempt is given back: the item was not tried to its end. A hold has no attempt to give. */
function release(parts: Parts, key: KeyRow): void {
  if (!key.held && !key.cancel) key.attempt -= 1;
  endLease(parts, key);
}

function retry(parts: Parts, key: KeyRow, { delayMs, place }: Extract<Ending, { type: "retry" }>): void {
  const { tx, items, line } = parts;
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
  key.delayed += 1;
  tx.queues.touch(queue).delayed += 1;
  queue.running -= 1;
  tx.later.add(queue.id);
  letGo(tx, key);
  line.promote(key);
}

function finish(parts: Parts, key: KeyRow, ending: Ending): void {
  const { tx, line, endings } = parts;
  const queue = tx.queues.touch(tx.queues.get(key.queue));
  queue.running -= 1;
  if (ending.type === "dead") endings.bury(queue, key, ending.failure);
  else if (ending.type === "done") {
    const { result } = ending;
    endings.endHead(queue, key, result === undefined ? { state: "done" } : { state: "done", result });
  } else endings.endHead(queue, key, { state: "cancelled" });
  const { worker } = key;
  letGo(tx, key);
  line.promote(key);
  if (worker !== undefined && isOpen(key)) tx.released.push({ key, worker });
}

function letGo(tx: Transaction, key: KeyRow): void {
  keep(tx, key);
  key.fence = 0;
  key.worker = undefined;
  key.progress = undefined;
  key.cancel = false;
}
