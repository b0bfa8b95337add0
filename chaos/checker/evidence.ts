/** The history, sorted by what the rules ask for. Made once; every rule reads it. */
import type { CancelAnswered, Fact, Final, Judged, RunFact, SubmitAnswered, SubmitSent } from "../history/fact.ts";
import { type Lease, leasesOf } from "./lease.ts";
import { Unreadable } from "./read-history.ts";
import { Troubles } from "./troubles.ts";

/** One item that somebody submitted, over all tries. */
export interface Submitted extends Pick<SubmitSent, "item" | "id" | "key" | "level" | "by" | "call"> {
  /** The first try. */
  readonly sentAt: number;
  /** The first yes. Undefined: nobody heard one. */
  readonly acceptedAt: number | undefined;
  readonly answers: readonly SubmitAnswered[];
  /** Every try was answered with no: nothing happened, it was said. */
  readonly isRefused: boolean;
  /** Another came first under the same id: this one must not run. */
  readonly isCopy: boolean;
}

export interface Evidence {
  readonly history: readonly Fact[];
  readonly rules: RunFact;
  /** By item, in the order in which they were first sent. */
  readonly submitted: ReadonlyMap<string, Submitted>;
  /** In the order in which they were heard of. */
  readonly leases: readonly Lease[];
  readonly leasesByItem: ReadonlyMap<string, readonly Lease[]>;
  /** In the order of the register. */
  readonly judged: readonly Judged[];
  readonly finals: ReadonlyMap<string, Final>;
  /** By item: what was answered to those who wanted to take it back. */
  readonly cancels: ReadonlyMap<string, readonly CancelAnswered[]>;
  readonly troubles: Troubles;
  /** For people: seconds since the begin. */
  readonly time: (at: number) => string;
}

export function evidenceOf(history: readonly Fact[]): Evidence {
  const rules = history.find((fact) => fact.type === "run");
  if (rules === undefined)
    throw new Unreadable(
      "The history does not say by which rules it was played: run.history is missing, or has lost its begin.",
    );
  const leases = leasesOf(history, rules);
  const finals = new Map<string, Final>();
  const cancels = new Map<string, CancelAnswered[]>();
  const judged: Judged[] = [];
  for (const fact of history) {
    if (fact.type === "final") finals.set(fact.item, fact);
    else if (fact.type === "judged") judged.push(fact);
    else if (fact.type === "cancel-sent" && !cancels.has(fact.item)) cancels.set(fact.item, []);
    else if (fact.type === "cancel") cancels.get(fact.item)?.push(fact);
  }
  return {
    history,
    rules,
    leases,
    finals,
    cancels,
    judged,
    submitted: submittedOf(history),
    leasesByItem: Map.groupBy(leases, ({ item }) => item),
    troubles: new Troubles(history, rules.leaseMs),
    time: (at) => `${((at - rules.at) / 1_000).toFixed(3)} s`,
  };
}

function submittedOf(history: readonly Fact[]): ReadonlyMap<string, Submitted> {
  const answers = new Map<string, SubmitAnswered[]>();
  const tries = new Map<string, number>();
  for (const fact of history) {
    if (fact.type === "submit-sent") tries.set(fact.item, (tries.get(fact.item) ?? 0) + 1);
    if (fact.type !== "submit") continue;
    const known = answers.get(fact.item);
    if (known === undefined) answers.set(fact.item, [fact]);
    else known.push(fact);
  }
  const firstOfId = new Map<string, string>();
  const submitted = new Map<string, Submitted>();
  for (const fact of history) {
    if (fact.type !== "submit-sent" || submitted.has(fact.item)) continue;
    const { item, id, key, level, by, call, at: sentAt } = fact;
    if (id !== undefined && !firstOfId.has(id)) firstOfId.set(id, item);
    const ofItem = answers.get(item) ?? [];
    const acceptedAt = ofItem.find(({ outcome }) => outcome === "ok")?.at;
    const isRefused = ofItem.length === tries.get(item) && ofItem.every(({ outcome }) => outcome === "fail");
    const isCopy = id !== undefined && firstOfId.get(id) !== item;
    const named = id === undefined ? {} : { id };
    submitted.set(item, {
      item,
      key,
      level,
      by,
      call,
      sentAt,
      acceptedAt,
      answers: ofItem,
      isRefused,
      isCopy,
      ...named,
    });
  }
  return submitted;
}
