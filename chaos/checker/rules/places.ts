/** The part of the order that is about items that run more than once: they keep their place. */
import type { Evidence } from "../evidence.ts";
import { byKey, ENDS, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/** Stores count in whole milliseconds, by a clock of their own. */
const ROUNDING_MS = 5;

export function places({ leases, rules, time }: Evidence): readonly Violation[] {
  return byKey(leases).flatMap((ofKey) => passed(ofKey, rules.levels, time).concat(hasty(ofKey, time)));
}

/**
 * From one lease of an item to its next one, nothing of its level or below is begun that stood behind it. A worker may go on before it is
 * written that it is done with an item; if it dies then, that item and those behind it run again.
 */
function passed(ofKey: readonly Lease[], levels: readonly string[], time: Evidence["time"]): readonly Violation[] {
  const byFence = ofKey.toSorted((a, b) => a.fence - b.fence);
  const lastOf = new Map<string, Lease>();
  for (const lease of byFence) lastOf.set(lease.item, lease);
  const begun = new Set<string>();
  /** The last lease so far of those that will have another: few at any time. */
  const open = new Map<string, Lease>();
  const found: Violation[] = [];
  for (const lease of byFence) {
    const isFirst = !begun.has(lease.item);
    begun.add(lease.item);
    open.delete(lease.item);
    if (isFirst) {
      for (const before of open.values()) {
        const isBelow = levels.indexOf(lease.level) >= levels.indexOf(before.level);
        if (!isBelow || wentOn(before, lease)) continue;
        const again = lastOf.get(before.item);
        const text =
          `${lease.item} (${lease.level}) was given out on ${lease.key} at ${time(lease.grantedAt)} (fence ${lease.fence}), although ` +
          `${before.item} (${before.level}) had been begun before it (fence ${before.fence}) and had to run again (fence ${again?.fence ?? "?"}).`;
        found.push({ rule: "ordered", key: lease.key, at: lease.grantedAt, text });
        break;
      }
    }
    if (lastOf.get(lease.item) !== lease) open.set(lease.item, lease);
  }
  return found;
}

/** The worker of the one was done with it, as far as it knew, when it was given the other. That it was too late with that it may have heard afterwards. */
function wentOn(before: Lease, { by, fence, grantedAt }: Lease): boolean {
  // Items of one run, and the store was not told of them before the lease was lost.
  if (before.by === by && before.fence === fence) return true;
  if (before.by !== by || before.ending === undefined || !ENDS.has(before.ending)) return false;
  return (before.releasedAt ?? Infinity) <= grantedAt && grantedAt <= (before.refusedAt ?? Infinity);
}

/** What failed waits for as long as its worker said. */
function hasty(ofKey: readonly Lease[], time: Evidence["time"]): readonly Violation[] {
  return [...Map.groupBy(ofKey, ({ item }) => item).values()].flatMap((ofItem) => {
    const byFence = ofItem.toSorted((a, b) => a.fence - b.fence);
    return byFence.slice(1).flatMap((again, index) => {
      const before = byFence[index];
      if (before?.releasedAt === undefined || before.ending !== "retry" || before.settled?.outcome !== "ok") return [];
      const dueAt = before.releasedAt + before.delayMs;
      if (again.grantedAt >= dueAt - ROUNDING_MS) return [];
      const text =
        `${again.item} of ${again.key} failed at ${time(before.releasedAt)} and was to wait until ${time(dueAt)}, ` +
        `but ${again.by} was given it at ${time(again.grantedAt)}.`;
      return [{ rule: "ordered" as const, key: again.key, at: again.grantedAt, text }];
    });
  });
}
