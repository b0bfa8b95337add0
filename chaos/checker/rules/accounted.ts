import type { Evidence, Submitted } from "../evidence.ts";
import type { Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/** States in which the store still has the item. */
const KEPT: ReadonlySet<string> = new Set(["waiting", "delayed", "running"]);

/** Accepted − (done ∪ dead ∪ waiting) = ∅, and nothing is done that nobody worked on. */
export function accounted(evidence: Evidence): readonly Violation[] {
  const finished = new Set<string>();
  for (const { accepted, item, step } of evidence.judged) if (accepted && step === "finished") finished.add(item);
  const found: Violation[] = [];
  for (const one of evidence.submitted.values()) {
    if (one.isCopy) continue;
    const text = problemOf(one, finished.has(one.item), evidence);
    if (text !== undefined) found.push({ rule: "accounted", key: one.key, at: one.acceptedAt ?? one.sentAt, text });
  }
  return [...found, ...unasked(evidence), ...deadLetters(evidence)];
}

function problemOf(one: Submitted, isFinished: boolean, evidence: Evidence): string | undefined {
  const { item, key, acceptedAt } = one;
  const { cancels, finals, leasesByItem, time } = evidence;
  const state = finals.get(item)?.state;
  const leases = leasesByItem.get(item) ?? [];
  const sent = `${item} of ${key} (sent at ${time(one.sentAt)})`;
  if (state === "done" && !isFinished) return `${sent} is done, says the store, but nobody finished it.`;
  if (state === "dead" && !leases.some((lease) => mayBe(lease, "dead")))
    return `${sent} is dead, says the store, but nobody gave it up.`;
  if (state === "cancelled" && !cancels.has(item)) return `${sent} was taken back, says the store, but by nobody.`;
  const answers = cancels.get(item) ?? [];
  const takenBack = answers.find(({ result }) => result === "cancelled");
  if (takenBack !== undefined && state !== undefined && state !== "cancelled")
    return `${sent} is ${state}, says the store, but it was taken back at ${time(takenBack.at)}.`;
  const unknown = answers.find(({ result }) => result === "missing");
  if (unknown !== undefined && acceptedAt !== undefined)
    return `${sent} was not known at ${time(unknown.at)}, when it was to be taken back, although it was accepted at ${time(acceptedAt)}.`;
  const told = leases.find(({ settled, mayHaveEnded }) => mayHaveEnded && settled?.outcome === "ok");
  if (told !== undefined && state !== undefined && state !== told.ending) {
    const { by, fence, ending = "done", settled } = told;
    return `${sent} is ${state}, says the store, but ${by} (fence ${fence}) was told at ${time(settled?.at ?? 0)} that it is ${ending}.`;
  }
  const isLeft = leftOver(evidence);
  if (state !== undefined && KEPT.has(state))
    return isLeft ? undefined : `${sent} is ${state}, says the store, but it had said that nothing was left.`;
  if (acceptedAt === undefined || (state === undefined && isLeft)) return undefined;
  const end = howLost(one, isFinished, leases, state);
  return end === undefined ? undefined : `${item} of ${key} was accepted at ${time(acceptedAt)}, and is lost: ${end}.`;
}

/** Of an item that is not waiting any more: what speaks against its having ended as it should. */
function howLost(
  { id }: Submitted,
  isFinished: boolean,
  leases: readonly Lease[],
  state: string | undefined,
): string | undefined {
  if (state === "missing") return "the store says that it is missing";
  if (state === "cancelled") return undefined;
  const isDead = leases.some((lease) => mayBe(lease, "dead"));
  if (!isFinished && !isDead)
    return id === undefined || state === undefined
      ? "nobody finished it, and nothing waits any more"
      : `the store says that it is ${state}`;
  // The work may be done; but whoever did it could not say so, and then it has to be given out again.
  if (!leases.some(({ mayHaveEnded }) => mayHaveEnded))
    return "nobody could tell the store that it has ended, and nothing waits any more";
  return undefined;
}

function mayBe(lease: Lease, ending: string): boolean {
  return lease.mayHaveEnded && lease.ending === ending;
}

/** Of items without an id the store does not tell one by one; but when nothing is left, nothing waits. */
function leftOver({ history }: Evidence): boolean {
  return (history.findLast((fact) => fact.type === "drained")?.left ?? 0) > 0;
}

function unasked({ leases, submitted, time }: Evidence): readonly Violation[] {
  return leases.flatMap(({ grantedAt: at, by, item, key }) => {
    const one = submitted.get(item);
    const why = one === undefined ? "which nobody had submitted" : one.isRefused ? "which had been refused" : undefined;
    if (why === undefined) return [];
    return [{ rule: "accounted" as const, key, at, text: `${by} was given ${item} of ${key} at ${time(at)}, ${why}.` }];
  });
}

/** Whatever was given up is among the dead letters once, and nothing else is. */
function deadLetters({ history, leases, leasesByItem, time }: Evidence): readonly Violation[] {
  const listed = history.findLast((fact) => fact.type === "dead-letters");
  if (listed === undefined) return [];
  const found: Violation[] = [];
  const seen = new Set<string>();
  for (const item of listed.items) {
    const ofItem = leasesByItem.get(item) ?? [];
    const why = seen.has(item) ? "twice" : ofItem.some((lease) => mayBe(lease, "dead")) ? undefined : "unasked";
    seen.add(item);
    if (why === undefined) continue;
    const text = `The store has ${item} among its dead letters ${why === "twice" ? "twice" : "although nobody gave it up"}, at ${time(listed.at)}.`;
    found.push({ rule: "accounted", at: listed.at, text, ...(ofItem[0] === undefined ? {} : { key: ofItem[0].key }) });
  }
  for (const { item, key, by, ending, settled } of leases) {
    if (ending !== "dead" || settled?.outcome !== "ok" || seen.has(item)) continue;
    const text = `${by} gave up ${item} of ${key} and was told so at ${time(settled.at)}, but it is not among the dead letters.`;
    found.push({ rule: "accounted", key, at: settled.at, text });
  }
  return found;
}
