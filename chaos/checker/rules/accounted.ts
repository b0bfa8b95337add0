import type { Evidence, Submitted } from "../evidence.ts";
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
  return [...found, ...unasked(evidence)];
}

function problemOf(one: Submitted, isFinished: boolean, evidence: Evidence): string | undefined {
  const { item, key, acceptedAt, id } = one;
  const { finals, leasesByItem, time } = evidence;
  const state = finals.get(item)?.state;
  const isDead = (leasesByItem.get(item) ?? []).some(({ ending }) => ending === "dead");
  const isKept = state === undefined ? leftOver(evidence) : KEPT.has(state);
  if (state === "done" && !isFinished) {
    return `${item} of ${key} (sent at ${time(one.sentAt)}) is done, says the store, but nobody finished it.`;
  }
  if (state === "dead" && !isDead)
    return `${item} of ${key} (sent at ${time(one.sentAt)}) is dead, says the store, but nobody gave it up.`;
  if (acceptedAt === undefined || isFinished || isDead || isKept) return undefined;
  const end =
    id === undefined
      ? "nobody finished it, and nothing waits any more"
      : `the store says that it is ${state ?? "missing"}`;
  return `${item} of ${key} was accepted at ${time(acceptedAt)}, and is lost: ${end}.`;
}

/** Of items without an id the store does not tell one by one; but when nothing is left, nothing waits. */
function leftOver({ history }: Evidence): boolean {
  return (history.findLast((fact) => fact.type === "drained")?.left ?? 0) > 0;
}

function unasked({ leases, submitted, time }: Evidence): readonly Violation[] {
  return leases
    .filter(({ item }) => !submitted.has(item))
    .map(({ grantedAt: at, by, item, key }) => ({
      rule: "accounted" as const,
      key,
      at,
      text: `${by} was given ${item} of ${key} at ${time(at)}, which nobody had submitted.`,
    }));
}
