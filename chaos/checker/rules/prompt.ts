import type { Evidence } from "../evidence.ts";
import { byKey, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/** An item that could run: it was accepted, its key was free, and nothing was wrong with anybody. */
export interface PickUp {
  readonly lease: Lease;
  readonly readyAt: number;
  readonly tookMs: number;
}

/** Nothing waits for a poll. Busy machines and less urgent levels may be late by much more than a good store is. */
const WITHIN_MS = 1_000;
/** With fewer, one slow pick-up would be the ninety-ninth of a hundred. */
const ENOUGH = 100;

/** Only first runs on keys that were let go: how soon what was lost comes back is another rule's concern. */
export function pickUpsOf({ leases, submitted, troubles }: Evidence): readonly PickUp[] {
  return byKey(leases).flatMap((ofKey) => {
    const byFence = ofKey.toSorted((a, b) => a.fence - b.fence);
    const begun = new Set<string>();
    return byFence.flatMap((lease, index) => {
      const isFirst = !begun.has(lease.item);
      begun.add(lease.item);
      const before = byFence[index - 1];
      const acceptedAt = submitted.get(lease.item)?.acceptedAt;
      const freeAt =
        before === undefined ? -Infinity : before.settled?.outcome === "ok" ? before.settled.at : undefined;
      // A further item of a run has not been waited for.
      if (!isFirst || lease.place > 0 || acceptedAt === undefined || freeAt === undefined) return [];
      const readyAt = Math.max(acceptedAt, freeAt);
      // Also of others: a worker that is stopped may have been offered the key just before, and keeps it for a moment.
      const isDisturbed =
        troubles.faults.some(({ from, to }) => from <= lease.grantedAt && to >= readyAt) ||
        troubles.ofEverybody(readyAt, lease.grantedAt) !== undefined ||
        troubles.ofProcess(lease.by, readyAt, lease.grantedAt) !== undefined;
      return isDisturbed ? [] : [{ lease, readyAt, tookMs: Math.max(0, lease.grantedAt - readyAt) }];
    });
  });
}

/** Too few to say anything about ninety-nine of a hundred. */
export function arePickUpsFew(evidence: Evidence): boolean {
  return pickUpsOf(evidence).length < ENOUGH;
}

export function prompt(evidence: Evidence): readonly Violation[] {
  const all = pickUpsOf(evidence).toSorted((a, b) => a.tookMs - b.tookMs);
  const atP99 = all[Math.ceil(all.length * 0.99) - 1];
  if (all.length < ENOUGH || atP99 === undefined || atP99.tookMs <= WITHIN_MS) return [];
  const { lease, readyAt, tookMs } = atP99;
  const text =
    `${lease.item} of ${lease.key} could run at ${evidence.time(readyAt)}, and ${lease.by} was given it ${(tookMs / 1_000).toFixed(2)} s later. ` +
    `That is the 99th of 100 of ${all.length} items; promised is that nothing waits for a poll.`;
  return [{ rule: "prompt", key: lease.key, at: lease.grantedAt, text }];
}
