import type { Instant } from "../../domain/clock.ts";
import type { CancelResult, PauseRequest, ReviveRequest } from "../../engine/port.ts";
import { nextNumber } from "./agenda.ts";
import { arrive, cancelWaiting, elect, end, withdraw } from "./moves.ts";
import { keyOf } from "./queue.ts";
import type { StoredItem, StoredQueue } from "./state.ts";

/** What an operator does to items and keys. */
export function cancel(queue: StoredQueue, id: string, now: Instant): CancelResult {
  const item = queue.items.get(id);
  if (item === undefined) return "missing";
  if (item.phase === "dead" || item.phase === "ended") return "ended";
  if (item.phase === "running" || item.covered) {
    item.cancelRequested = true;
    return "requested";
  }
  cancelWaiting(item, now);
  elect(item.key, now);
  return "cancelled";
}

export function pause(queue: StoredQueue, request: PauseRequest, now: Instant): void {
  if (request.key === undefined) {
    queue.paused = request.paused;
    queue.agenda.stirred.add(queue);
    return;
  }
  const key = keyOf(queue, request.key);
  if (key.paused !== request.paused) withdraw(key);
  key.paused = request.paused;
  elect(key, now);
}

export function revive(queue: StoredQueue, request: ReviveRequest, now: Instant): number {
  const letters = request.ids === undefined ? [...queue.deadLetters] : namedLetters(queue, request.ids);
  for (const item of letters) {
    queue.deadLetters.leave(item);
    if (request.action === "retry") submitAnew(queue, item, now);
    else drop(item, now);
  }
  return letters.length;
}

function namedLetters(queue: StoredQueue, ids: readonly string[]): StoredItem[] {
  const items = [...new Set(ids)].map((id) => queue.items.get(id));
  return items.filter((item) => item !== undefined).filter(({ phase }) => phase === "dead");
}

function submitAnew(queue: StoredQueue, item: StoredItem, now: Instant): void {
  // Its key may have been forgotten since, and made anew by others.
  item.key = keyOf(queue, item.key.name);
  item.sequence = nextNumber(queue.agenda);
  item.attempts = 0;
  item.losses = 0;
  item.cancelRequested = false;
  item.outcome = undefined;
  arrive(item, now);
}

function drop(item: StoredItem, now: Instant): void {
  // It stays dead as of then, but is remembered from now on only as long as other ended items.
  end(item, item.outcome ?? { state: "dead", at: now.wall, attempt: item.attempts }, now);
}
