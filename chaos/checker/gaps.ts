/**
 * What a history would have to say before its silence means anything. A run in which nothing happened, or of which half is missing, breaks
 * no promise, and proves nothing.
 */
import type { Fact } from "../history/fact.ts";
import type { Evidence } from "./evidence.ts";

/** In sentences. None: the run can be judged. */
export function gapsOf(evidence: Evidence): readonly string[] {
  return [...nothingHappened(evidence), ...nobodyAsked(evidence), ...torn(evidence)];
}

function nothingHappened({ submitted, leases, judged, troubles }: Evidence): readonly string[] {
  const endless = troubles.faults.filter(({ to }) => to === Infinity);
  return [
    [...submitted.values()].some(({ acceptedAt }) => acceptedAt !== undefined) ? "" : "No item was accepted.",
    leases.length > 0 ? "" : "No item was given out.",
    judged.some(({ accepted }) => accepted) ? "" : "No worker changed anything.",
    troubles.faults.length > 0 ? "" : "There was no fault: the run was too short, or nobody could be hurt.",
    ...endless.map(({ story }) => `The history does not say when this was over: ${story}.`),
  ].filter((text) => text !== "");
}

/** What the store was not asked about when all was over. */
function nobodyAsked({ history, submitted, finals }: Evidence): readonly string[] {
  let unasked = 0;
  for (const { item, id, isCopy, acceptedAt } of submitted.values())
    if (id !== undefined && !isCopy && acceptedAt !== undefined && !finals.has(item)) unasked += 1;
  return [
    unasked === 0 ? "" : `Of ${unasked} items with an id nobody asked the store how they ended.`,
    history.some(({ type }) => type === "dead-letters") ? "" : "Nobody asked the store for its dead letters.",
  ].filter((text) => text !== "");
}

/** What is in one history and should be in another, or earlier in the same. */
function torn({ history, submitted }: Evidence): readonly string[] {
  const granted = new Set<string>();
  const sent = new Set<string>();
  const judged = new Set<string>();
  for (const fact of history) {
    if (fact.type === "grant") granted.add(leaseOf(fact));
    else if (fact.type === "effect-sent") sent.add(effectOf(fact, fact.by));
    else if (fact.type === "judged") judged.add(effectOf(fact, fact.worker));
  }
  const missing = new Map<string, number>();
  const miss = (what: string): void => {
    missing.set(what, (missing.get(what) ?? 0) + 1);
  };
  for (const fact of history) {
    if (
      (fact.type === "renew" || fact.type === "settle-sent" || fact.type === "effect-sent") &&
      !granted.has(leaseOf(fact))
    )
      miss(`the lease under which ${fact.by} worked`);
    if (fact.type === "judged" && !sent.has(effectOf(fact, fact.worker)))
      miss(`what ${fact.worker} asked of the registers`);
    if (fact.type === "effect" && fact.outcome === "ok" && !judged.has(effectOf(fact, fact.by)))
      miss(`what the registers answered to ${fact.by}`);
    if (fact.type === "submit" && !submitted.has(fact.item)) miss(`what ${fact.by} submitted`);
  }
  return [...missing].map(([what, times]) => `A history is torn: ${what} is missing (${times} times).`);
}

type OfLease = Extract<Fact, { readonly fence: number }>;

function leaseOf({ by, fence, key }: OfLease): string {
  return `${by} ${fence} ${key}`;
}

function effectOf({ fence, key, item, step }: Extract<Fact, { readonly step: string }>, worker: string): string {
  return `${worker} ${fence} ${key} ${item} ${step}`;
}
