import type { Ending } from "../../../src/engine/port.ts";
import type { Settings } from "../settings.ts";
import { LARGEST_MARGIN, type LeaseRecord } from "./lease-record.ts";
import type { Troubles } from "./troubles.ts";
import type { Findings } from "./violation.ts";

/** A timer may be late by this, and a handler that is told to end does so at once. */
const LATE_MS = 10;
/** A settlement that got no answer is made again after a pause, if there is time for it. */
const SETTLE_PAUSE_MS = 200;

/** What a worker made of a lease: started or not, stopped in time, settled as its handler ended. */
export function checkRun(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  // Holds have no worker.
  if (record.token === undefined) return;
  checkStart(record, settings, troubles, findings);
  checkStop(record, troubles, findings);
  checkEndings(record, settings, troubles, findings);
  checkSettled(record, troubles, findings);
}

function checkStart(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  const { key, token, started, attempt } = record;
  if (started === undefined) return;
  if (attempt > settings.attempts) {
    findings.add("attempts", started.at, key, `item ${token ?? 0} was started as attempt ${attempt}`);
  }
  const stop = troubles.stopOf(record.worker);
  if (stop !== undefined && started.at > stop.at) {
    findings.add("stop", started.at, key, `item ${token ?? 0} was started by a worker that was stopped at ${stop.at}`);
  }
}

/** When the grace of a stop is over, who listens is told. */
function checkStop(record: LeaseRecord, troubles: Troubles, findings: Findings): void {
  const { key, number, started, finished } = record;
  const stop = troubles.stopOf(record.worker);
  if (stop === undefined || started?.guard !== "signal" || started.at > stop.at) return;
  const until = stop.at + stop.graceMs + LATE_MS;
  if ((finished?.at ?? Infinity) <= until || !troubles.wasFree(record.process, stop.at, until)) return;
  findings.add("stop", until, key, `the handler under lease #${number} was not told that its worker stopped`);
}

function checkEndings(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  const { key, number, started, finished, attempt } = record;
  const allowed = allowedEndings(record, settings, troubles.stopOf(record.worker)?.at);
  for (const { at, ending } of record.settlings) {
    if (started !== undefined && (finished === undefined || at < finished.at)) {
      findings.add("endings", at, key, `lease #${number} was settled ${ending} before its handler had ended`);
    } else if (!allowed.includes(ending)) {
      const how = finished?.how ?? "not started";
      const says = `lease #${number} was settled ${ending} although its handler ended: ${how} (attempt ${attempt})`;
      findings.add(ending === "retry" && how === "stopping" ? "stop" : "endings", at, key, says);
    }
  }
}

function allowedEndings(
  { finished, started, attempt, toldCancel }: LeaseRecord,
  { attempts }: Settings,
  stoppedAt: number | undefined,
): readonly Ending["type"][] {
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

/** What ended while its lease was certain is settled, and settled again while no answer comes. */
function checkSettled(record: LeaseRecord, troubles: Troubles, findings: Findings): void {
  const { process, key, number, finished, told, settlings, leaseMs } = record;
  const [first] = told;
  if (finished === undefined || first === undefined || finished.how === "lost") return;
  // With the largest margin, which a slow way to the store asks for; and wall clocks show whole milliseconds.
  const certainUntil = first.since + leaseMs - LARGEST_MARGIN * leaseMs - 1;
  if (finished.at < certainUntil && settlings.length === 0 && troubles.wasFree(process, first.since, finished.at + 1)) {
    const says = `lease #${number} was never settled, although its handler ended in time`;
    findings.add("endings", finished.at, key, says);
  }
  for (const at of record.unanswered) {
    const again = settlings.some((settling) => settling.at >= at);
    if (again || at + SETTLE_PAUSE_MS > certainUntil) continue;
    if (!troubles.wasFree(process, first.since, at + SETTLE_PAUSE_MS)) continue;
    findings.add(
      "endings",
      at,
      key,
      `lease #${number} was not settled again, although no answer came and it was certain`,
    );
  }
}
