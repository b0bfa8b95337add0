/** What must hold of a history, whatever came first of the calls that were made together. */
import { cancelledWith, type Fate, fatesOf, leaseEnd, leaseSurelyUntil, type Seen, waitedThrough } from "./fates.ts";
import { type History, type Leased, runOf, type Span, type Submitted, tagOf } from "./history.ts";

/** Right after a moment. */
const EPSILON = 0.001;
/** Clocks of different programs are read in whole milliseconds. */
const MS = 3;

export interface Terms {
  readonly isLossy: boolean;
  /** Of these whoever submits at the same time as others is counted too. */
  readonly exactLimits: "all" | "key" | "none";
  readonly keyLimit: number;
  readonly queueLimit: number;
  /** Leases cover runs, and items say how often theirs was lost. */
  readonly runs: boolean;
}

export function checkHistory(history: History, terms: Terms): readonly string[] {
  const fates = fatesOf(history);
  return [
    ...checkIds(history),
    ...fates.flatMap((fate) => checkFate(fate, history, terms)),
    ...checkLeases(history),
    ...checkAlone(history, terms),
    ...checkSettlements(history),
    ...checkBusy(history, fates),
    // A grant or a hold that was not heard of is not in the history.
    ...(terms.isLossy ? [] : checkRefusals(history, fates)),
    ...(terms.isLossy || terms.exactLimits === "none" ? [] : checkLimits(history, fates, terms)),
    ...checkOrder(fates),
  ];
}

/** One acceptance of an id; whoever repeats it gets the first receipt. */
function checkIds(history: History): readonly string[] {
  const found: string[] = [];
  const named = history.submitted.filter(({ submission }) => submission.id !== undefined);
  for (const [id, all] of Map.groupBy(named, ({ submission }) => submission.id ?? "")) {
    const accepted = all.flatMap(({ result }) => (result?.ok === true ? [result.accepted] : []));
    const firsts = accepted.filter(({ duplicate }) => !duplicate);
    const isOpen = all.some(({ result }) => result === undefined);
    if (firsts.length > 1) found.push(`id ${id} was accepted ${firsts.length} times`);
    if (firsts.length === 0 && accepted.length > 0 && !isOpen) found.push(`id ${id} is a duplicate of nothing`);
    const receipts = new Set(accepted.map(({ key, level, at }) => `key ${key}, level ${level}, at ${at}`));
    if (receipts.size > 1) found.push(`id ${id} has several receipts: ${[...receipts].join("; ")}`);
    const tags = new Set(history.leased.flatMap(runOf).flatMap((item) => (item.id === id ? [tagOf(item)] : [])));
    if (tags.size > 1) found.push(`${tags.size} items with id ${id} ran: ${[...tags].join(", ")}`);
  }
  return found;
}

function checkFate(fate: Fate, history: History, terms: Terms): readonly string[] {
  const { tag, submitted, turns, seen, ends, cancels } = fate;
  const { isLossy } = terms;
  const found: string[] = [];
  const { submission, result } = submitted;
  for (const { leased, index } of seen) {
    const item = runOf(leased)[index];
    if (item === undefined) continue;
    if (item.key !== submission.key || item.level !== submission.level)
      found.push(`item ${tag} was submitted for key ${submission.key}, and ran on ${item.key}`);
    if (result?.ok === true && item.id !== result.accepted.id) found.push(`item ${tag} ran under id ${item.id}`);
    const isInnocent = item.attempt === 1 && item.losses === undefined && item.level === leased.item?.level;
    if (index > 0 && !isInnocent) found.push(`item ${tag} was covered by a run at attempt ${item.attempt}`);
  }
  found.push(...checkAttempts(fate, history, terms));
  if (ends.length > 1) found.push(`item ${tag} ended ${ends.length} times: ${ends.map(({ how }) => how).join(", ")}`);
  for (const end of ends) {
    const after = seen.find(
      ({ leased: { begun, lease } }) => begun > end.ended || (end.fence !== undefined && lease.fence > end.fence),
    );
    const late = turns.find(({ begun }) => begun > end.ended);
    const fence = (after?.leased ?? late)?.lease.fence;
    if (fence !== undefined) found.push(`item ${tag} was ${end.how}, and ran under fence ${fence}`);
  }
  for (const one of seen) {
    const over = cancelledWith(fate, one);
    const after = seen.find(({ leased: { lease } }) => lease.fence > one.leased.lease.fence);
    if (over !== undefined && after !== undefined)
      found.push(`item ${tag} was to end as cancelled, and was handed out under fence ${after.leased.lease.fence}`);
  }
  for (const cancel of cancels) {
    const wasThere = submitted.ended < cancel.begun && submission.keepMs > 0;
    if (cancel.result === "missing" && wasThere)
      found.push(`item ${tag} was accepted, and missing to whoever cancelled it`);
    const reported = turns.flatMap(({ end }) => (end === undefined ? [] : [end]));
    const hasEnded = [...ends, ...reported].some(({ begun }) => begun < cancel.ended) || cancels.length > 1;
    const lapsed = seen.some(({ leased }) => leaseSurelyUntil(leased, history) < cancel.ended + MS);
    if (cancel.result === "ended" && !hasEnded && !lapsed && !isLossy)
      found.push(`item ${tag} had ended, to whoever cancelled it`);
    const started = seen.some(({ leased }) => leased.begun < cancel.ended);
    if (cancel.result === "requested" && !started && !isLossy)
      found.push(`item ${tag} did not run when its cancelling was requested`);
    const covering = seen.find(({ leased, course }) => isCovered(leased, course.over?.begun, cancel, history));
    if (cancel.result === "cancelled" && covering !== undefined && !isLossy)
      found.push(`item ${tag} was cancelled by others while fence ${covering.leased.lease.fence} covered it`);
  }
  return found;
}

/** Surely, from the first moment of the call to its last: it ran or stood behind what ran. */
function isCovered(leased: Leased, over: number | undefined, { begun, ended }: Span, history: History): boolean {
  const until = Math.min(over ?? Infinity, leaseSurelyUntil(leased, history) - MS);
  return (
    leased.ended < begun && ended < until && !history.settled.some((one) => one.leased === leased && one.begun < ended)
  );
}

/** Each begin of an item counts once, and each lost lease is the fault of the one item that ran. */
function checkAttempts({ tag, turns, seen }: Fate, history: History, { isLossy, runs }: Terms): readonly string[] {
  const found: string[] = [];
  let losses = 0;
  for (const [index, { item, lease }] of turns.entries()) {
    const before = turns[index - 1];
    const last = before?.item.attempt ?? 0;
    const isAgain = before?.end?.ending.type === "dead";
    const expected = isAgain ? 1 : before?.end?.ending.type === "release" ? last : last + 1;
    losses = isAgain ? 0 : losses + (before !== undefined && before.end === undefined ? 1 : 0);
    // Whether an ending counted is not known of one whose reply was lost.
    const isOpen = isLossy && seen.some(({ course }) => course.isOpen);
    const isGood = isOpen || (isLossy ? item.attempt >= (isAgain ? 1 : last) : item.attempt === expected);
    if (!isGood) found.push(`item ${tag} ran with attempt ${item.attempt} under fence ${lease.fence}, after ${last}`);
    if (runs && !isLossy && (item.losses ?? 0) !== losses)
      found.push(`item ${tag} was handed out with ${item.losses ?? 0} lost leases, after ${losses} while it ran`);
    if (isAgain && !history.revived.some(({ ended }) => ended > (before?.end?.begun ?? 0)))
      found.push(`item ${tag} was dead, and ran again`);
  }
  return found;
}

/** Fences of a key rise, and its leases do not overlap. */
function checkLeases(history: History): readonly string[] {
  const found: string[] = [];
  for (const [key, all] of Map.groupBy(history.leased, ({ lease }) => lease.key)) {
    const byFence = all.toSorted((a, b) => a.lease.fence - b.lease.fence);
    for (const [index, next] of byFence.entries()) {
      for (const before of byFence.slice(0, index)) {
        const pair = `key ${key}: fence ${before.lease.fence} of ${nameOf(before)} and ${next.lease.fence} of ${nameOf(next)}`;
        if (before.lease.fence === next.lease.fence) found.push(`${pair} are the same`);
        if (next.ended < before.begun) found.push(`${pair} came in the wrong order`);
        const over = history.settled.find((one) => one.leased === before && one.result === "settled");
        const lost = history.settled.find((one) => one.leased === before && one.result === undefined);
        // Whoever settles it ends it; nobody else can have the key before, or before it has run out.
        const until =
          over !== undefined ? over.begun : Math.min(lost?.begun ?? Infinity, leaseEnd(before, history) - MS);
        if (next.ended < until) found.push(`${pair} overlap by ${Math.round(until - next.ended)} ms`);
      }
    }
  }
  return found;
}

/** When a lease over several items was lost, nobody knows which of them was the cause: they go on one by one. */
function checkAlone(history: History, { isLossy }: Terms): readonly string[] {
  const found: string[] = [];
  if (isLossy) return found;
  for (const [key, all] of Map.groupBy(history.leased, ({ lease }) => lease.key)) {
    const byFence = all.toSorted((a, b) => a.lease.fence - b.lease.fence);
    for (const [index, lost] of byFence.entries()) {
      if (history.settled.some(({ leased, result }) => leased === lost && result === "settled")) continue;
      const tags = new Set(runOf(lost).map(tagOf));
      const next = byFence.slice(index + 1).find((leased) => runOf(leased).some((item) => tags.has(tagOf(item))));
      if (next !== undefined && next.behind.length > 0)
        found.push(
          `key ${key}: fence ${next.lease.fence} covers several items, after fence ${lost.lease.fence} was lost`,
        );
    }
  }
  return found;
}

function nameOf({ item }: Leased): string {
  return item === undefined ? "a hold" : `item ${tagOf(item)}`;
}

/** A lease is settled once, and is lost only when it is over. */
function checkSettlements(history: History): readonly string[] {
  const found: string[] = [];
  for (const [leased, all] of Map.groupBy(history.settled, (one) => one.leased)) {
    const times = all.filter(({ result }) => result === "settled").length;
    if (times > 1) found.push(`fence ${leased.lease.fence} of key ${leased.lease.key} was settled ${times} times`);
    const [only] = all;
    const surely = leaseSurelyUntil(leased, history);
    if (all.length === 1 && only?.result === "lost" && only.ended < surely - MS)
      found.push(`fence ${leased.lease.fence} of key ${leased.lease.key} was lost before its time`);
  }
  for (const { leased, result, ended, begun } of history.renewed) {
    const settled = history.settled.some((one) => one.leased === leased && one.begun < ended && one.result !== "lost");
    if (result?.ok === false && !settled && ended < leaseSurelyUntil(leased, history) - MS)
      found.push(`fence ${leased.lease.fence} of key ${leased.lease.key} could not be renewed before its time`);
    const over = history.settled.find((one) => one.leased === leased && one.result === "settled");
    if (result?.ok === true && over !== undefined && over.ended < begun)
      found.push(`fence ${leased.lease.fence} of key ${leased.lease.key} was renewed after it was settled`);
  }
  return found;
}

/** Somebody was refused although there cannot have been so much. */
function checkRefusals(history: History, fates: readonly Fate[]): readonly string[] {
  const found: string[] = [];
  for (const { tag, submission, result, begun, ended } of history.submitted) {
    if (result?.ok !== false) continue;
    const { key, keyLimit, queueLimit } = submission;
    const possible = fates.filter(
      ({ submitted, ends }) => submitted.begun < ended && !ends.some((end) => end.ended < begun),
    );
    const onKey = possible.filter(({ submitted }) => submitted.submission.key === key).length;
    const { code } = result.error;
    if (code === "KEY_FULL" && onKey < keyLimit) found.push(`${tag}: key ${key} cannot have been full`);
    if (code === "QUEUE_FULL" && possible.length < queueLimit) found.push(`${tag}: the queue cannot have been full`);
    const isHeld = history.leased.some((one) => one.lease.key === key && one.item === undefined && one.begun < ended);
    if (code === "KEY_BUSY" && onKey === 0 && !isHeld) found.push(`${tag}: key ${key} cannot have been busy`);
  }
  return found;
}

/** Mode strict was accepted although the key was surely in use. */
function checkBusy(history: History, fates: readonly Fate[]): readonly string[] {
  return history.submitted.flatMap(({ tag, submission, result, begun, ended }) => {
    if (submission.mode !== "strict" || result?.ok !== true || result.accepted.duplicate) return [];
    const beside = fates.find(
      (fate) =>
        fate.submitted.submission.key === submission.key && fate.tag !== tag && waitedThrough(fate, { begun, ended }),
    );
    return beside === undefined ? [] : [`${tag}: key ${submission.key} was busy with item ${beside.tag}`];
  });
}

/** What has waited since it was accepted was counted by whoever was accepted after. */
function checkLimits(
  history: History,
  fates: readonly Fate[],
  { keyLimit, queueLimit, exactLimits }: Terms,
): readonly string[] {
  const found: string[] = [];
  // What replaces does not grow the queue: it may take the place of one that came back when its lease ran out, in a queue filled up meanwhile.
  const moments = [...new Set(history.submitted.map(({ ended }) => ended))];
  for (const at of moments) {
    const waits = fates.filter(
      (fate) =>
        fate.submitted.result?.ok === true &&
        fate.submitted.result.accepted.replaced.length === 0 &&
        waitedThrough(fate, { begun: at + EPSILON, ended: at + EPSILON }),
    );
    if (exactLimits === "all" && waits.length > queueLimit)
      found.push(`${waits.length} items waited in the queue, of ${queueLimit}`);
    const fifo = waits.filter(({ submitted }) => submitted.submission.mode === "fifo");
    for (const [key, all] of Map.groupBy(fifo, ({ submitted }) => submitted.submission.key))
      if (all.length > keyLimit) found.push(`${all.length} items waited on key ${key}, of ${keyLimit}`);
  }
  return [...new Set(found)];
}

/** Of one key and level, what was accepted first runs first. */
function checkOrder(fates: readonly Fate[]): readonly string[] {
  const found: string[] = [];
  const lined = fates.filter(({ submitted }) => submitted.result !== undefined && submitted.submission.delayMs === 0);
  const laneOf = ({ submission }: Submitted): string => JSON.stringify([submission.key, submission.level]);
  // Whom one has replaced whose reply was lost is not known.
  const replacedUnheard = new Set(
    fates.flatMap(({ submitted: { result, submission } }) =>
      result === undefined && submission.mode === "latest" ? [submission.key] : [],
    ),
  );
  for (const all of Map.groupBy(lined, ({ submitted }) => laneOf(submitted)).values()) {
    for (const first of all) {
      if (replacedUnheard.has(first.submitted.submission.key)) continue;
      for (const later of all) {
        if (first.submitted.ended >= later.submitted.begun) continue;
        const ranLater = later.seen[0];
        const ran = first.seen[0];
        if (ranLater === undefined) continue;
        const { ended } = ranLater.leased;
        const isGone =
          first.ends.some(({ begun }) => begun <= ended) || first.cancels.some(({ begun }) => begun <= ended);
        const isBehind = ran === undefined || isAfter(ran, ranLater);
        if (isBehind && !isGone) found.push(`item ${later.tag} ran before item ${first.tag}, which was there first`);
      }
    }
  }
  return found;
}

function isAfter(one: Seen, other: Seen): boolean {
  const fence = one.leased.lease.fence - other.leased.lease.fence;
  return fence === 0 ? one.index > other.index : fence > 0;
}
