import type { Instant } from "../../domain/clock.ts";
import { Heap } from "./heap.ts";
import type { Agenda, StoredItem } from "./state.ts";

export function newAgenda(): Agenda {
  return {
    delayed: new Heap(isDueBefore),
    blocked: new Heap(isDueBefore),
    leases: new Heap((a, b) => a.deadline < b.deadline || (a.deadline === b.deadline && a.fence < b.fence)),
    remembered: new Heap((a, b) => a.forgetAt < b.forgetAt),
    stirred: new Set(),
    lastNumber: 0,
    lastFence: 0,
  };
}

/** For arrivals and for places in the ready order. */
export function nextNumber(agenda: Agenda): number {
  agenda.lastNumber += 1;
  return agenda.lastNumber;
}

/** One counter for the whole store: it rises for each key too, and idle keys need no memory of theirs. */
export function nextFence(agenda: Agenda): number {
  agenda.lastFence += 1;
  return agenda.lastFence;
}

/** Until the next delay, back-off or lease ends. */
export function nextDueMs(agenda: Agenda, now: Instant): number | undefined {
  const dueAt = Math.min(agenda.delayed.first()?.dueAt ?? Infinity, agenda.blocked.first()?.dueAt ?? Infinity);
  const deadline = agenda.leases.first()?.deadline ?? Infinity;
  const dueMs = Math.min(dueAt - now.wall, deadline - now.monotonic);
  return dueMs === Infinity ? undefined : Math.max(dueMs, 0);
}

function isDueBefore(a: StoredItem, b: StoredItem): boolean {
  const dueA = a.dueAt ?? 0;
  const dueB = b.dueAt ?? 0;
  return dueA < dueB || (dueA === dueB && a.sequence < b.sequence);
}
