import { type EffectRecord, type LeaseRecord, marginMs } from "./lease-record.ts";
import type { Troubles } from "./troubles.ts";
import type { Findings } from "./violation.ts";

/** A timer may be a few milliseconds late, and with it the signal. */
const LATE_SIGNAL_MS = 5;

/**
 * G1 as the holders see it: the times for which they may believe in their leases do not overlap, whatever the store
 * thinks. Without the margin, which is kept in hand for clocks that are worse than these.
 */
export function checkBeliefs(records: Iterable<LeaseRecord>, findings: Findings): void {
  const perKey = Map.groupBy(records, ({ key }) => key);
  for (const [key, leases] of perKey) {
    let last: { readonly lease: LeaseRecord; readonly end: number } | undefined;
    for (const lease of leases.toSorted((a, b) => a.madeAt - b.madeAt || a.number - b.number)) {
      if (lease.told.length === 0) continue;
      const believed = Math.max(...lease.told.map(({ since }) => since + lease.leaseMs));
      const end = Math.min(lease.settled?.at ?? Infinity, believed);
      if (last !== undefined && lease.madeAt < last.end) {
        const says = `lease #${lease.number} began ${last.end - lease.madeAt} ms before #${last.lease.number} was over for its holder`;
        findings.add("G1 exclusive", lease.madeAt, key, says);
      }
      if (last === undefined || end > last.end) last = { lease, end };
    }
  }
}

/** Who asks or listens does nothing after its local deadline, unless its process was stopped over that moment. */
export function checkEffects(record: LeaseRecord, troubles: Troubles, findings: Findings): void {
  for (const effect of record.effects) {
    const says = effect.guard === "careless" ? undefined : lateness(record, effect, troubles);
    if (says !== undefined) findings.add("deadline", effect.at, record.key, `lease #${record.number}: ${says}`);
  }
}

function lateness(record: LeaseRecord, effect: EffectRecord, troubles: Troubles): string | undefined {
  const { at, wall, guard } = effect;
  const usableMs = record.leaseMs - marginMs(record.leaseMs);
  const told = record.told.slice(0, effect.told);
  const deadline = Math.max(...told.map(({ since }) => since)) + usableMs;
  if (effect.knewLoss) return "an effect after the store had said that the lease is lost";
  if (guard === "check") {
    const certain = told.some(({ since, sinceWall }) => at < since + usableMs && wall < sinceWall + usableMs);
    return certain ? undefined : `an effect ${at - deadline} ms after the deadline, although check() was asked`;
  }
  if (at <= deadline + LATE_SIGNAL_MS || troubles.wasPaused(record.process, deadline, at, LATE_SIGNAL_MS))
    return undefined;
  return `an effect ${at - deadline} ms after the deadline, although the signal had not fired`;
}
