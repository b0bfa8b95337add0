import { QueueMissing } from "../../domain/errors.ts";
import type { StoredItem, StoredQueue } from "./state.ts";

/** A queue is deleted: nothing of it comes due any more, its leases are lost, and whoever waits is told. */
export function empty(queue: StoredQueue): void {
  const { agenda } = queue;
  const missing = (): Promise<never> => Promise.reject(new QueueMissing(queue.name));
  for (const item of queue.items.values()) {
    comeDueNoMore(item);
    for (const tell of item.watchers ?? []) tell(missing());
  }
  for (const { lease } of queue.keys.values()) {
    if (lease === undefined) continue;
    agenda.leases.remove(lease);
    const { holder } = lease;
    // What it leads to must not happen within this turn.
    if (holder !== undefined) queueMicrotask(() => holder.lost(holder.lease));
  }
  for (const waiting of [...queue.claims, ...queue.holds]) waiting.answer(missing());
  agenda.stirred.delete(queue);
}

function comeDueNoMore(item: StoredItem): void {
  const { delayed, blocked, remembered } = item.key.queue.agenda;
  if (item.phase === "delayed") delayed.remove(item);
  else if (item.phase === "ended") remembered.remove(item);
  else blocked.remove(item);
}
