import type { Renewed, RunFact } from "../../history/fact.ts";
import type { Evidence } from "../evidence.ts";
import { byKey, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/** Who asks to renew or to settle after another was given the key, or after the lease has run out, must be refused. */
export function stale({ leases, rules, time }: Evidence): readonly Violation[] {
  const overdue = leases.flatMap((lease) => ranOut(lease, rules, time));
  const overtaken = byKey(leases).flatMap((ofKey) => {
    const byFence = ofKey.toSorted((a, b) => a.fence - b.fence);
    // Of all leases with a higher fence, the one that was heard of first.
    const found: Violation[] = [];
    let next: Lease | undefined;
    let heard: Lease | undefined;
    let fence: number | undefined;
    for (const lease of byFence.toReversed()) {
      // The items of a run share a lease.
      if (lease.fence !== fence) next = heard;
      fence = lease.fence;
      if (next !== undefined) found.push(...lateRenewals(lease, next, time), ...lateEnd(lease, next, time));
      if (heard === undefined || lease.grantedAt < heard.grantedAt) heard = lease;
    }
    return found;
  });
  return [...overdue, ...overtaken];
}

/** The store counts a lease from a moment before its worker hears of it; whoever asks later than this asks too late. */
function ranOut(lease: Lease, { leaseMs }: RunFact, time: Evidence["time"]): readonly Violation[] {
  const found: Violation[] = [];
  let end = lease.grantedAt + leaseMs;
  // A renewal without an answer may have happened, also much later, when the connection had held it back.
  let isCertain = true;
  const tell = (what: string, asked: number, at: number): void => {
    const text =
      `${lease.by} ${what} its lease on ${lease.key} (fence ${lease.fence}, item ${lease.item}) at ${time(asked)} and was told yes, ` +
      `although it had run out at ${time(end)} at the latest.`;
    found.push({ rule: "stale", key: lease.key, at, text });
  };
  for (const renewal of lease.renewals) {
    const { at, outcome } = renewal;
    if (outcome === "unknown") isCertain = false;
    if (outcome !== "ok") continue;
    const asked = askedAt(renewal);
    if (isCertain && asked > end) tell("renewed", asked, at);
    end = Math.max(end, at + leaseMs);
    isCertain = true;
  }
  const { releasedAt, settled } = lease;
  if (releasedAt !== undefined && settled?.outcome === "ok" && isCertain && releasedAt > end)
    tell("settled", releasedAt, settled.at);
  return found;
}

/** The store says from when the lease counts; it cannot make the question older than it is. */
function askedAt({ sentAt, since = sentAt }: Renewed): number {
  return Math.max(sentAt, since);
}

function lateRenewals(lease: Lease, next: Lease, time: Evidence["time"]): readonly Violation[] {
  return lease.renewals.flatMap((renewal) => {
    if (renewal.outcome !== "ok" || askedAt(renewal) <= next.grantedAt) return [];
    const text =
      `${lease.by} renewed its lease on ${lease.key} (fence ${lease.fence}) at ${time(renewal.at)}, ` +
      `although ${next.by} had been given the key (fence ${next.fence}) at ${time(next.grantedAt)}.`;
    return [{ rule: "stale" as const, key: lease.key, at: renewal.at, text }];
  });
}

function lateEnd(lease: Lease, next: Lease, time: Evidence["time"]): readonly Violation[] {
  const { releasedAt, settled } = lease;
  if (releasedAt === undefined || settled?.outcome !== "ok" || releasedAt <= next.grantedAt) return [];
  const text =
    `${lease.by} settled ${lease.item} on ${lease.key} (fence ${lease.fence}) at ${time(releasedAt)} and was told yes, ` +
    `although ${next.by} had been given the key (fence ${next.fence}) at ${time(next.grantedAt)}.`;
  return [{ rule: "stale", key: lease.key, at: releasedAt, text }];
}
