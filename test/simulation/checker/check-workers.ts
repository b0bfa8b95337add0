import type { Ending } from "../../../src/engine/port.ts";
import type { Settings } from "../settings.ts";
import { type LeaseRecord, marginMs } from "./lease-record.ts";
import type { Troubles } from "./troubles.ts";
import type { Findings } from "./violation.ts";

/** After this long without an answer a worker that stops is gone: see its grace, and five seconds for handlers to end. */
const STOP_GRACE_MS = 6_000;

/** What a worker made of a lease: started, settled as the handler ended, given up in time. */
export function checkRun(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  const { number, key, token, started, finished, settlings, attempt } = record;
  // Holds have no worker.
  if (token === undefined) return;
  const stoppedAt = troubles.stoppedAt(record.worker);
  if (started !== undefined) {
    if (attempt > settings.attempts)
      findings.add("attempts", started, key, `item ${token} was started as attempt ${attempt}`);
    if (stoppedAt !== undefined && started > stoppedAt) {
      findings.add("stop", started, key, `item ${token} was started by a worker that had been stopped at ${stoppedAt}`);
    }
  }
  const allowed = allowedEndings(record, settings, stoppedAt);
  for (const { at, ending } of settlings) {
    if (started !== undefined && (finished === undefined || at < finished.at)) {
      findings.add("endings", at, key, `lease #${number} was settled ${ending} before its handler had ended`);
    } else if (!allowed.includes(ending)) {
      const how = finished?.how ?? "not started";
      const says = `lease #${number} was settled ${ending} although its handler ended: ${how} (attempt ${attempt})`;
      findings.add(ending === "retry" && how === "stopping" ? "stop" : "endings", at, key, says);
    }
  }
  if (mustSettle(record, troubles) && settlings.length === 0) {
    findings.add(
      "endings",
      record.madeAt,
      key,
      `lease #${number} was never settled, although its handler ended in time`,
    );
  }
}

function allowedEndings(
  { finished, started, attempt, toldCancel }: LeaseRecord,
  settings: Settings,
  stoppedAt: number | undefined,
): readonly Ending["type"][] {
  const { attempts } = settings;
  if (started === undefined) return attempt > attempts ? ["dead", "release"] : ["release"];
  if (finished === undefined) return [];
  const { how, at } = finished;
  if (how === "returned") return ["done"];
  if (toldCancel || how === "cancelled") return ["cancelled"];
  if (how === "stopping") return ["release"];
  if (how === "lost") return [];
  const again: Ending["type"] = attempt >= attempts || how === "fatal" ? "dead" : "retry";
  // After its signal fired for the stop, whatever a handler throws is taken for giving up.
  return stoppedAt !== undefined && stoppedAt <= at ? [again, "release"] : [again];
}

/** Ended while the lease was certain, in a process that could act on it. */
function mustSettle({ process, finished, told, leaseMs }: LeaseRecord, troubles: Troubles): boolean {
  const [first] = told;
  if (finished === undefined || first === undefined || finished.how === "lost") return false;
  // A millisecond less, because wall clocks show whole ones.
  if (finished.at >= first.since + leaseMs - marginMs(leaseMs) - 1) return false;
  const faults = troubles.between(process, first.since, finished.at + 1);
  return faults.every(({ kind }) => kind !== "crash" && kind !== "clock step" && kind !== "pause" && kind !== "resume");
}

/** An item that was run to success more than once, or for nothing: how often, and whether a fault explains it. */
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
    findings.add(
      "duplicates",
      finished.at,
      key,
      `item ${token} succeeded under lease #${number} for nothing, without a fault`,
    );
  }
  return duplicates;
}

function isExplained(record: LeaseRecord, finishedAt: number, settings: Settings, troubles: Troubles): boolean {
  const { timeoutMs } = settings;
  const stoppedAt = troubles.stoppedAt(record.worker);
  // Past the timeout a lease is no longer renewed; a stopped worker leaves a handler that ignores its signal behind.
  if (timeoutMs !== undefined && record.started !== undefined && finishedAt - record.started >= timeoutMs) return true;
  if (stoppedAt !== undefined && finishedAt - stoppedAt > STOP_GRACE_MS - 1_000) return true;
  return troubles.between(record.process, record.madeAt, finishedAt + 2 * record.leaseMs).length > 0;
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
