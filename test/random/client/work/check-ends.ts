import type { Engine } from "../../../../src/engine/port.ts";
import type { BatonEvent } from "../../../../src/index.ts";
import { codeOf, type ItemNote, type Notes, type RunNote, TELL_MS } from "./notes.ts";
import { LATER_MS, type Plan } from "./plan.ts";

type Told = BatonEvent & { readonly at: number };
const ENDS = ["done", "retry", "dead", "cancelled", "released", "discarded"];

/** How each item ended, and what was told of each of its runs, in a run that is over. */
export async function checkEnds(plan: Plan, notes: Notes, inspector: Engine, now: number): Promise<void> {
  const processes = new Set(notes.workers.map(({ process }) => process));
  for (const { name, events } of processes) {
    if (plan.isCalm && events.some(({ type }) => type === "session-lost"))
      notes.blame(now, `${name} lost a key it held`);
    checkLosses(notes, events, now);
  }
  for (const run of notes.runs) {
    if (run.worker !== undefined) checkRun(notes, run, now);
  }
  for (const item of notes.items.values()) await checkItem(notes, item, inspector, now);
  if (plan.isCalm && plan.deeds.every(({ kind }) => kind !== "stop" && kind !== "cancel" && kind !== "take"))
    checkOrder(notes, now);
}

/** An end is told when the store's answer has come, which may be after the next attempt has begun. */
function eventsOf({ process, id, attempt }: RunNote): readonly Told[] {
  return process.events.filter((event) => "item" in event && event.item.id === id && event.item.attempt === attempt);
}

/** A loss is told once for each lease, and each item of its run, whether or not a handler saw it. */
function checkLosses(notes: Notes, events: readonly Told[], now: number): void {
  const lost = events.flatMap((event) => (event.type === "lost" ? [`${event.item.id} (fence ${event.fence})`] : []));
  for (const lease of new Set(lost)) {
    const times = lost.filter((one) => one === lease).length;
    if (times > 1) notes.blame(now, `the loss of ${lease} is told ${times} times`);
  }
}

/** @param begun the fences under which a handler saw it */
function isUnseen(event: Told, begun: ReadonlySet<number>): boolean {
  if (event.type === "lost") return !begun.has(event.fence);
  return event.type === "dead" && event.failure.code === "ATTEMPTS_EXHAUSTED";
}

/** One begins, and one end is told; it is the one that the handler and the options make. */
function checkRun(notes: Notes, run: RunNote, now: number): void {
  const { id, worker, attempt, act, endedAt, reason, from } = run;
  const later = notes.runs.filter((one) => one.id === id && one.from >= from && one !== run).map((one) => one.from);
  // What was given back is tried again under the same number.
  const isTwin = (one: RunNote): boolean => one.id === id && one.attempt === attempt && one.process === run.process;
  const all = notes.runs.filter(isTwin);
  const twins = all.length;
  const begun = new Set(all.map(({ lease }) => lease.fence));
  const events = eventsOf(run);
  // What was given up, or given back, before a handler saw it is told for itself.
  const names = events.filter((event) => !isUnseen(event, begun)).map(({ type }) => type);
  const blame = (says: string): void => notes.blame(now, `attempt ${attempt} of ${id} ${says}: ${names.join(", ")}`);
  const count = (...types: readonly string[]): number => names.filter((type) => types.includes(type)).length;
  if (count("started") !== twins) blame("is told to have begun not once");
  // Another lease may have been lost before a handler began: the attempt of an item that went back is granted anew.
  const losses = events.filter((event) => event.type === "lost" && event.fence === run.lease.fence).length;
  if (losses > 1) blame("is told to be lost twice");
  if (endedAt === undefined || worker === undefined) return;
  if (reason === undefined && codeOf(run.lease.signal.reason) === "HANDLER_TIMEOUT")
    blame("runs into its timeout after its end");
  if (twins > 1) return;
  // Under other leases it may have gone back, any number of times, before a handler saw it.
  const isGivenBack = count("released") > 0 && count(...ENDS) > 1;
  const settled = count(...ENDS) - count("released");
  if (settled > 1 || (settled === 0 && count("released") === 0)) return blame("has not one end");
  if (count("discarded") > 0 && losses !== 1) blame("was discarded, and not lost once");
  if (!notes.isCalm || count("discarded") > 0) return;
  if (isGivenBack) return;
  const end = events.find((event) => ENDS.includes(event.type) && !isUnseen(event, begun));
  const isReturned =
    act.end.startsWith("return") &&
    (act.isAtOnce || !act.heedsSignal || reason === undefined || endedAt - from >= act.lengthMs);
  const isThrown = act.isAtOnce || !act.heedsSignal || reason === undefined;
  const expected = isThrown && isReturned ? "done" : expectedEnd(run, count("cancelling") > 0);
  if (end === undefined || end.type !== expected)
    return blame(`ends as ${end?.type ?? "nothing"}, and not as ${expected}`);
  const isMissing = act.end === "return too much" || act.end === "return a function";
  if (end.type === "done" && count("result-not-kept") !== (isMissing ? 1 : 0))
    blame("tells wrongly whether its result is kept");
  if (end.type !== "retry") return;
  checkDelay(run, end.delayMs, blame);
  const next = Math.min(Infinity, ...later);
  if (next < endedAt + end.delayMs - TELL_MS)
    blame(`is tried again after ${(next - endedAt).toFixed(1)} ms, and not ${end.delayMs}`);
  // By then the store has the end; and a worker that is free takes it at once.
}

function expectedEnd({ worker, attempt, act, reason, lease }: RunNote, isCancelling: boolean): string {
  if (isCancelling) return "cancelled";
  if (reason === "STOPPING" && lease.signal.aborted) return "released";
  const isFatal = act.end === "fatal" && (reason === undefined || !act.heedsSignal || act.isAtOnce);
  if (isFatal || attempt >= (worker?.retry.attempts ?? Infinity)) return "dead";
  return "retry";
}

function checkDelay({ worker, attempt, act, reason }: RunNote, delayMs: number, blame: (says: string) => void): void {
  if (worker === undefined) return;
  const { retry } = worker;
  const isLater = act.end === "later" && (reason === undefined || !act.heedsSignal || act.isAtOnce);
  if (isLater) {
    if (delayMs !== LATER_MS) blame(`is to be tried after ${delayMs} ms, and asked for ${LATER_MS}`);
  } else if (retry.delayMs !== undefined) {
    if (delayMs !== retry.delayMs) blame(`is to be tried after ${delayMs} ms, and not ${retry.delayMs}`);
  } else {
    const most = Math.min(retry.maxBackoffMs, retry.backoffMs * 2 ** (attempt - 1));
    if (delayMs > most) blame(`is to be tried after ${delayMs} ms, and ${most} at most`);
  }
}

async function checkItem(
  notes: Notes,
  { id, cancels, isReplaced, token }: ItemNote,
  inspector: Engine,
  now: number,
): Promise<void> {
  const blame = (says: string): void => notes.blame(now, `item ${id} ${says}`);
  const found = await inspector.find({ queue: "work", id });
  const outcome = found?.outcome;
  if (outcome === undefined) return blame(`has not ended, and is ${found?.state ?? "unknown"}`);
  const runs = notes.runs.filter((run) => run.id === id);
  if (outcome.state === "replaced" && !isReplaced && notes.isCalm) blame("was replaced, and nobody was told");
  if (isReplaced && outcome.state !== "replaced") blame(`was replaced, and is ${outcome.state}`);
  if (outcome.state === "replaced" && runs.length > 0) {
    // What has run was not waiting when it was replaced, unless it was given back.
    if (runs.every(({ attempt }) => attempt === 0)) blame("was replaced while it ran");
  }
  const isCancelled = cancels.some(({ answer }) => answer === "cancelled");
  if (isCancelled && outcome.state !== "cancelled") blame(`was cancelled, and is ${outcome.state}`);
  if (cancels.length === 0 && outcome.state === "cancelled") blame("is cancelled, and nobody asked for it");
  for (const { answer, at } of cancels) {
    if (answer === "cancelled" && runs.some(({ from }) => from > at + CANCEL_MS)) blame("runs after it was cancelled");
    if (answer === "missing") blame("is not known when it is to be cancelled");
  }
  if (!notes.isCalm) return;
  checkAttempts(runs, blame);
  const last = runs.at(-1);
  if (outcome.state !== "done" || last === undefined || last.worker === undefined) return;
  const { end } = last.act;
  if (!end.startsWith("return")) return blame(`is done, and its last handler did not return`);
  if ((outcome.resultMissing !== undefined) !== (end === "return too much" || end === "return a function"))
    blame(`has a result that is wrongly ${outcome.resultMissing === undefined ? "kept" : "missing"}`);
  if (end === "return" && outcome.result?.body !== JSON.stringify({ token }))
    blame("has another result than its handler returned");
}

const CANCEL_MS = 10;

/** Each attempt counts one more, except those that were given back. */
function checkAttempts(runs: readonly RunNote[], blame: (says: string) => void): void {
  for (const [index, { attempt, process, lease, id }] of runs.entries()) {
    const before = runs[index - 1];
    if (before === undefined) {
      if (attempt !== 1) blame(`begins with attempt ${attempt}`);
      continue;
    }
    if (before.worker === undefined) continue;
    const isAgain = attempt === before.attempt && eventsOf(before).some(({ type }) => type === "released");
    const isRight = isAgain || attempt === before.attempt + 1;
    // A grant that raced with a stop goes back without a handler.
    if (!isRight)
      blame(`goes on from attempt ${before.attempt} with ${attempt} (${process.name}, fence ${lease.fence}, ${id})`);
  }
}

/** With one level, no delay and places that are kept, a key's items run one after the other as they came. */
function checkOrder(notes: Notes, now: number): void {
  if (notes.workers.some(({ retry }) => retry.place !== "keep")) return;
  const plain = [...notes.items.values()].filter(({ isPlain }) => isPlain);
  for (const later of plain) {
    for (const earlier of plain) {
      if (earlier.key !== later.key || earlier.acceptedAt >= later.submittedAt) continue;
      const first = notes.runs.find(({ id }) => id === later.id)?.from ?? Infinity;
      const last = notes.runs.findLast(({ id }) => id === earlier.id)?.from ?? -Infinity;
      if (last > first)
        notes.blame(now, `${later.id} on ${later.key} ran before ${earlier.id} had ended, which came before`);
    }
  }
}
