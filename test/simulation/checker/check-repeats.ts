import type { Settings } from "../settings.ts";
import type { LeaseRecord } from "./lease-record.ts";
import type { Troubles } from "./troubles.ts";
import type { Findings } from "./violation.ts";

/** A stopped worker leaves handlers that ignore their signal behind, after its grace and five seconds more. */
const ABANDONED_AFTER_MS = 5_000;

/** Runs that succeeded for nothing, so that the item ran again: how many, and whether a fault explains each. */
export function checkDuplicates(
  records: Iterable<LeaseRecord>,
  settings: Settings,
  troubles: Troubles,
  findings: Findings,
): number {
  let duplicates = 0;
  for (const record of records) {
    const { finished, token, key, number } = record;
    if (token === undefined || finished?.how !== "returned" || record.settled?.ending === "done") continue;
    duplicates += 1;
    if (isExplained(record, finished.at, settings, troubles)) continue;
    const says = `item ${token} succeeded under lease #${number} for nothing, without a fault`;
    findings.add("duplicates", finished.at, key, says);
  }
  return duplicates;
}

function isExplained(record: LeaseRecord, finishedAt: number, settings: Settings, troubles: Troubles): boolean {
  const { timeoutMs } = settings;
  const { started, madeAt, leaseMs, process } = record;
  // Past the timeout a lease is no longer renewed.
  if (timeoutMs !== undefined && started !== undefined && finishedAt - started.at >= timeoutMs) return true;
  const stop = troubles.stopOf(record.worker);
  if (stop !== undefined && finishedAt - stop.at > ABANDONED_AFTER_MS) return true;
  return troubles.between(process, madeAt, finishedAt + 2 * leaseMs).length > 0;
}

/** No item is started more often than its attempts allow; given back by a stopping worker does not count. */
export function checkStarts(records: Iterable<LeaseRecord>, settings: Settings, findings: Findings): void {
  const perItem = Map.groupBy(records, ({ token }) => token);
  for (const [token, leases] of perItem) {
    if (token === undefined) continue;
    const starts = leases.filter(({ started }) => started !== undefined).length;
    const released = leases.filter(({ settled }) => settled?.ending === "release").length;
    if (starts <= settings.attempts + released) continue;
    const says = `item ${token} was started ${starts} times, ${settings.attempts} are allowed and ${released} did not count`;
    findings.add("attempts", leases[0]?.madeAt ?? 0, leases[0]?.key, says);
  }
}
