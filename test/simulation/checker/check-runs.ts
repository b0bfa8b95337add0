import type { Ending } from "../../../src/engine/port.ts";
import { KEEP_MS } from "../../../src/worker/prefetch.ts";
import { RUN_MS } from "../../../src/worker/run.ts";
import { SUSPECT_LOSSES } from "../../../src/worker/solitude.ts";
import type { Settings } from "../settings.ts";
import { type ItemRecord, LARGEST_MARGIN, type LeaseRecord, type SettlingRecord } from "./lease-record.ts";
import type { Troubles } from "./troubles.ts";
import type { Findings } from "./violation.ts";

/** A timer may be late by this, and a handler that is told to end does so at once. */
const LATE_MS = 10;
/** A settlement that got no answer is made again after a pause, if there is time for it. */
const SETTLE_PAUSE_MS = 200;

/** What a worker made of a lease: started or not, stopped in time, settled as its handlers ended. */
export function checkRun(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  // Holds have no worker.
  if (record.items.length === 0) return;
  for (const item of record.items) {
    checkStart(record, item, settings, troubles, findings);
    checkFurther(record, item, findings);
    checkStop(record, item, troubles, findings);
  }
  checkKept(record, settings, troubles, findings);
  checkReported(record, settings, troubles, findings);
  checkEndings(record, settings, troubles, findings);
  checkSettled(record, troubles, findings);
}

function checkStart(
  { key, worker }: LeaseRecord,
  { token, started, attempt, unbegunBefore }: ItemRecord,
  settings: Settings,
  troubles: Troubles,
  findings: Findings,
): void {
  if (started === undefined) return;
  if (attempt - unbegunBefore > settings.attempts) {
    findings.add("attempts", started.at, key, `item ${token} was started as attempt ${attempt}`);
  }
  const stop = troubles.stopOf(worker);
  if (stop !== undefined && started.at > stop.at) {
    findings.add("stop", started.at, key, `item ${token} was started by a worker that was stopped at ${stop.at}`);
  }
}

/** A further item of a run begins when the one before it is done, within the time of a run, and while it is covered for all its worker knows. */
function checkFurther(record: LeaseRecord, { place, token, started }: ItemRecord, findings: Findings): void {
  const { key, number, items, told, closedAt } = record;
  const [first] = told;
  const before = items[place - 1];
  if (started === undefined || before === undefined || first === undefined) return;
  const add = (says: string): void => findings.add("runs", started.at, key, `lease #${number}: ${says}`);
  if (before.finished === undefined || before.finished.at > started.at)
    add(`item ${token} was begun before item ${before.token}, which goes before it, had ended`);
  else if (before.finished.how !== "returned")
    add(`item ${token} was begun behind item ${before.token}, which ended: ${before.finished.how}`);
  const sinceMs = started.at - first.since;
  if (sinceMs >= RUN_MS)
    add(`item ${token} was begun ${sinceMs} ms after the lease was made; a run lasts ${RUN_MS} ms at most`);
  if (closedAt !== undefined && closedAt < started.at)
    add(`item ${token} was begun after its worker had said that nothing more would`);
}

/** When the grace of a stop is over, who listens is told. */
function checkStop(
  { key, number, worker, process }: LeaseRecord,
  { started, finished }: ItemRecord,
  troubles: Troubles,
  findings: Findings,
): void {
  const stop = troubles.stopOf(worker);
  if (stop === undefined || started?.guard !== "signal" || started.at > stop.at) return;
  const until = stop.at + stop.graceMs + LATE_MS;
  if ((finished?.at ?? Infinity) <= until || !troubles.wasFree(process, stop.at, until)) return;
  findings.add("stop", until, key, `the handler under lease #${number} was not told that its worker stopped`);
}

/** A key that was claimed before there was a slot for it is begun soon, or goes back. */
function checkKept(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  const { process, key, number, items, told, settlings } = record;
  const [first] = items;
  const [heard] = told;
  // What is to run alone waits for the others to end.
  const isSuspect = first !== undefined && first.losses >= SUSPECT_LOSSES && first.attempt <= settings.attempts;
  if (first === undefined || heard === undefined || isSuspect) return;
  const until = heard.at + KEEP_MS + LATE_MS;
  const decidedAt = Math.min(first.started?.at ?? Infinity, settlings[0]?.at ?? Infinity);
  if (decidedAt <= until || !troubles.wasFree(process, heard.at, until)) return;
  const says = `lease #${number} was kept for longer than ${KEEP_MS} ms, neither begun nor given back`;
  findings.add("runs", until, key, says);
}

/** While an item of a run takes long, the store is told of those that ended before it. */
function checkReported(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  const { process, key, number, items, told, settlings, closedAt, silentAt } = record;
  if (silentAt !== undefined)
    findings.add("runs", silentAt, key, `lease #${number} was renewed, and nobody said what had ended of its run`);
  const [first] = told;
  const slow = items.findLast(({ started }) => started !== undefined);
  if (first === undefined || slow?.started === undefined || slow.place === 0) return;
  const until = Math.max(first.since + RUN_MS, slow.started.at) + LATE_MS;
  const reportedAt = Math.min(closedAt ?? Infinity, settlings[0]?.at ?? Infinity);
  if ((slow.finished?.at ?? Infinity) <= until || reportedAt <= until) return;
  const isOver = until >= first.since + record.leaseMs * (1 - LARGEST_MARGIN);
  const timedOut = settings.timeoutMs !== undefined && until - slow.started.at >= settings.timeoutMs;
  if (isOver || timedOut || !troubles.wasFree(process, first.since, until)) return;
  const says = `item ${slow.token} takes long, and nobody told the store how those before it in the run of lease #${number} ended`;
  findings.add("runs", until, key, says);
}

function checkEndings(record: LeaseRecord, settings: Settings, troubles: Troubles, findings: Findings): void {
  const { key, number } = record;
  for (const settling of record.settlings) {
    const { at, ending } = settling;
    const last = lastOf(record, settling);
    if (last === undefined) {
      findings.add("endings", at, key, `lease #${number} was settled ${ending} for an item that it does not cover`);
      continue;
    }
    checkBefore(record, settling, last, findings);
    const { started, finished, attempt } = last;
    const allowed = allowedEndings(last, settings, troubles.stopOf(record.worker)?.at);
    if (started !== undefined && (finished === undefined || at < finished.at)) {
      findings.add("endings", at, key, `lease #${number} was settled ${ending} before its handler had ended`);
    } else if (!allowed.includes(ending)) {
      const how = finished?.how ?? "not started";
      const says = `lease #${number} was settled ${ending} although its handler ended: ${how} (attempt ${attempt})`;
      findings.add(ending === "retry" && how === "stopping" ? "stop" : "endings", at, key, says);
    }
  }
}

/** The item that a settlement ends: the one behind those of which the store hears, or has heard. */
function lastOf({ items }: LeaseRecord, { named }: SettlingRecord): ItemRecord | undefined {
  return items.find(({ id }) => !named.includes(id));
}

function checkBefore(
  { key, number, items }: LeaseRecord,
  { at, ending }: SettlingRecord,
  last: ItemRecord,
  findings: Findings,
): void {
  for (const { token, finished } of items.slice(0, last.place)) {
    if (finished?.how === "returned" && finished.at <= at) continue;
    findings.add("endings", at, key, `lease #${number}: item ${token} was reported done, and it was not`);
  }
  const untold = items.slice(last.place + 1).find(({ started }) => started !== undefined && started.at <= at);
  if (untold === undefined) return;
  const says = `lease #${number} was settled ${ending} for item ${last.token}, and item ${untold.token} behind it had begun`;
  findings.add("endings", at, key, says);
}

function allowedEndings(
  { finished, started, attempt, unbegunBefore, toldCancel, place }: ItemRecord,
  { attempts }: Settings,
  stoppedAt: number | undefined,
): readonly Ending["type"][] {
  // One that waited to run alone may have been cancelled before it began.
  if (started === undefined && toldCancel) return ["cancelled", "release"];
  if (started === undefined) return attempt > attempts && place === 0 ? ["dead", "release"] : ["release"];
  if (finished === undefined) return [];
  const { how, at } = finished;
  if (how === "returned") return ["done"];
  if (toldCancel || how === "cancelled") return ["cancelled"];
  if (how === "stopping") return ["release"];
  if (how === "lost") return [];
  const again: Ending["type"] = attempt >= attempts || how === "fatal" ? "dead" : "retry";
  // The process may have begun what it believes that it has not given back.
  const isSpared = again === "dead" && how !== "fatal" && attempt - unbegunBefore < attempts;
  const allowed: readonly Ending["type"][] = isSpared ? ["dead", "retry"] : [again];
  // After its signal fired for the stop, whatever a handler throws is taken for giving up.
  return stoppedAt !== undefined && stoppedAt <= at ? [...allowed, "release"] : allowed;
}

/** What ended while its lease was certain is settled, and settled again while no answer comes. */
function checkSettled(record: LeaseRecord, troubles: Troubles, findings: Findings): void {
  const { process, key, number, items, told, settlings, leaseMs } = record;
  const [first] = told;
  const finished = items.findLast(({ started }) => started !== undefined)?.finished;
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
