import type { Settings } from "../settings.ts";
import type { ItemRecord, LeaseRecord } from "./lease-record.ts";
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
    for (const item of record.items) {
      const { finished, token, ended } = item;
      if (finished?.how !== "returned" || ended === "done") continue;
      duplicates += 1;
      if (isExplained(record, item, finished.at, settings, troubles)) continue;
      const says = `item ${token} succeeded under lease #${record.number} for nothing, without a fault`;
      findings.add("duplicates", finished.at, record.key, says);
    }
  }
  return duplicates;
}

function isExplained(
  { items, madeAt, leaseMs, process, worker }: LeaseRecord,
  { place }: ItemRecord,
  finishedAt: number,
  settings: Settings,
  troubles: Troubles,
): boolean {
  const { timeoutMs } = settings;
  // Past the timeout a lease is no longer renewed; those that ended before in its run are told by then, if nothing is lost on the way.
  const over = items.slice(place).find(({ started, finished }) => {
    if (timeoutMs === undefined || started === undefined) return false;
    return (finished?.at ?? Infinity) - started.at >= timeoutMs;
  });
  if (over?.place === place) return true;
  const stop = troubles.stopOf(worker);
  if (stop !== undefined && finishedAt - stop.at > ABANDONED_AFTER_MS) return true;
  return troubles.between(process, madeAt, finishedAt + 2 * leaseMs).length > 0;
}

/** No item is started more often than its attempts allow; given back by a stopping worker does not count. */
export function checkStarts(
  records: Iterable<LeaseRecord>,
  settings: Settings,
  troubles: Troubles,
  findings: Findings,
): void {
  const all = [...records].flatMap((record) => record.items.map((item) => ({ record, item })));
  const perItem = Map.groupBy(all, ({ item: { token } }) => token);
  for (const [token, own] of perItem) {
    const started = own.filter(({ item }) => item.started !== undefined);
    const starts = started.filter(({ item }) => item.isCounted).length;
    const released = own.filter(({ item }) => item.ended === "release").length;
    const [first] = own;
    if (starts > settings.attempts + released) {
      const says = `item ${token} was started ${starts} times, ${settings.attempts} are allowed and ${released} did not count`;
      findings.add("attempts", first?.record.madeAt ?? 0, first?.record.key, says);
    }
    for (const { record, item } of started) checkCounted(record, item, settings, troubles, findings);
  }
}

/** An item of a run that was begun, and of which no report told the store: something must have come in between. */
function checkCounted(
  record: LeaseRecord,
  item: ItemRecord,
  settings: Settings,
  troubles: Troubles,
  findings: Findings,
): void {
  const { number, key } = record;
  const { token, started, startedAgainAt, isCounted } = item;
  if (startedAgainAt !== undefined)
    findings.add("runs", startedAgainAt, key, `item ${token} was begun twice under lease #${number}`);
  if (isCounted || started === undefined) return;
  const until = item.finished?.at ?? started.at;
  if (isExplained(record, item, until, settings, troubles)) return;
  findings.add(
    "runs",
    started.at,
    key,
    `item ${token} was begun under lease #${number}, and the store was never told of it, without a fault`,
  );
}
