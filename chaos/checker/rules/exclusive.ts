import type { Evidence } from "../evidence.ts";
import { byKey, endOf, isLive, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/**
 * From the moment a worker heard of its lease until it let go of it, or its local deadline passed, nobody else may have the key. That a
 * process was killed meanwhile does not end its lease: whoever takes over has to wait for it.
 */
export function exclusive(evidence: Evidence): readonly Violation[] {
  return [...atOnce(evidence), ...tooEarly(evidence), ...fromTheFuture(evidence)];
}

/** Stores count in whole milliseconds, by a clock of their own. */
const ROUNDING_MS = 5;

/**
 * By the store's clock a lease lasts longer than its worker relies on it. It began after `since`, so whoever is given the key
 * before `since` and a lease was given it too early, also when the worker before had stopped by then.
 */
function tooEarly({ leases, rules, time }: Evidence): readonly Violation[] {
  return byKey(leases).flatMap((ofKey) => {
    const byFence = ofKey.toSorted((a, b) => a.fence - b.fence);
    return byFence.slice(1).flatMap((next, index) => {
      const lease = byFence[index];
      if (lease === undefined || (lease.releasedAt ?? Infinity) <= next.grantedAt) return [];
      const since = lease.renewals.reduce((latest, { since: renewed = 0 }) => Math.max(latest, renewed), lease.since);
      const goodUntil = since + rules.leaseMs;
      if (next.grantedAt >= goodUntil - ROUNDING_MS) return [];
      const text =
        `${next.by} was given ${next.key} (fence ${next.fence}, item ${next.item}) at ${time(next.grantedAt)}, ` +
        `although the lease of ${lease.by} (fence ${lease.fence}, item ${lease.item}) lasts until ${time(goodUntil)} at least, and it had not let go.`;
      return [{ rule: "exclusive" as const, key: next.key, at: next.grantedAt, text }];
    });
  });
}

/** A process compares its two readings of the one clock when it begins, and may be wrong by this. */
const CLOCK_MS = 0.1;

/** A deadline that counts from later than the worker heard of it is later than the store's. */
function fromTheFuture({ leases, time }: Evidence): readonly Violation[] {
  return leases.flatMap((lease) =>
    [{ at: lease.grantedAt, since: lease.since }, ...lease.renewals].flatMap(({ at, since }) => {
      if (since === undefined || since <= at + CLOCK_MS) return [];
      const text =
        `${lease.by} heard at ${time(at)} that its lease on ${lease.key} (fence ${lease.fence}) counts from ${time(since)}, ` +
        `which was yet to come.`;
      return [{ rule: "exclusive" as const, key: lease.key, at, text }];
    }),
  );
}

function atOnce({ leases, time }: Evidence): readonly Violation[] {
  return byKey(leases.filter(isLive)).flatMap((ofKey) => {
    const found: Violation[] = [];
    let longest: Lease | undefined;
    for (const lease of ofKey.toSorted((a, b) => a.grantedAt - b.grantedAt)) {
      if (longest !== undefined && lease.grantedAt < endOf(longest)) {
        const text =
          `${lease.by} was given ${lease.key} (fence ${lease.fence}, item ${lease.item}) at ${time(lease.grantedAt)}, ` +
          `while ${longest.by} had it (fence ${longest.fence}, item ${longest.item}) from ${time(longest.grantedAt)} until ${time(endOf(longest))}.`;
        found.push({ rule: "exclusive", key: lease.key, at: lease.grantedAt, text });
      }
      if (longest === undefined || endOf(lease) > endOf(longest)) longest = lease;
    }
    return found;
  });
}
