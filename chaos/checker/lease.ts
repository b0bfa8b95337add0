/** A lease as its worker lived it: from the moment it heard of it until it let go, or could not be certain any more. */
import type { EffectSent, Fact, Granted, Renewed, RunFact, SettleAnswered, SettleSent } from "../history/fact.ts";

export interface Lease extends Pick<Granted, "by" | "item" | "id" | "key" | "level" | "fence" | "attempt" | "since"> {
  readonly grantedAt: number;
  /** The local deadline in the end, by what the worker heard in time. */
  readonly until: number;
  /** When it first asked the store to end the lease. */
  readonly releasedAt: number | undefined;
  /** What the store answered to that, if it was heard. */
  readonly settled: SettleAnswered | undefined;
  readonly ending: string | undefined;
  /** Of an attempt that failed: how long it was to wait. */
  readonly delayMs: number;
  /** When the store first said that there was nothing to end for this worker. */
  readonly refusedAt: number | undefined;
  /** The store was asked to end the item, and did not say no every time. */
  readonly mayHaveEnded: boolean;
  readonly renewals: readonly Renewed[];
  readonly effects: readonly EffectSent[];
}

/** Endings after which an item is never seen again. */
export const ENDS: ReadonlySet<string> = new Set(["done", "dead", "cancelled"]);

type OfLease = Granted | Renewed | SettleSent | SettleAnswered | EffectSent;

/** In the order in which they were heard of. */
export function leasesOf(history: readonly Fact[], rules: RunFact): readonly Lease[] {
  const grants: Granted[] = [];
  const others = new Map<string, OfLease[]>();
  for (const fact of history) {
    if (fact.type === "grant") grants.push(fact);
    else if (isOfLease(fact)) {
      const name = nameOf(fact);
      const known = others.get(name);
      if (known === undefined) others.set(name, [fact]);
      else known.push(fact);
    }
  }
  return grants.map((grant) => leaseOf(grant, others.get(nameOf(grant)) ?? [], rules));
}

function leaseOf(grant: Granted, facts: readonly OfLease[], rules: RunFact): Lease {
  const { by, item, id, key, level, fence, attempt, since, at: grantedAt } = grant;
  const renewals = facts.filter((fact) => fact.type === "renew");
  const asked = facts.filter((fact) => fact.type === "settle-sent");
  const [sent] = asked;
  const answers = facts.filter((fact) => fact.type === "settle");
  // Asked again after a lost answer, the store may say that there is nothing to end any more: the first yes counts.
  const settled = answers.find(({ outcome }) => outcome === "ok") ?? answers.at(-1);
  return {
    by,
    item,
    id,
    key,
    level,
    fence,
    attempt,
    since,
    grantedAt,
    renewals,
    settled,
    until: deadline(since, renewals, Infinity, rules),
    releasedAt: sent?.at,
    ending: sent?.ending,
    delayMs: sent?.delayMs ?? 0,
    refusedAt: answers.find(({ outcome }) => outcome === "fail")?.at,
    mayHaveEnded:
      asked.some(({ ending }) => ENDS.has(ending)) &&
      (answers.length < asked.length || answers.some(({ outcome }) => outcome !== "fail")),
    effects: facts.filter((fact) => fact.type === "effect-sent"),
  };
}

/** The local deadline as the worker knew it at a moment. */
export function deadlineAt(lease: Lease, at: number, rules: RunFact): number {
  return deadline(lease.since, lease.renewals, at, rules);
}

function deadline(since: number, renewals: readonly Renewed[], at: number, { leaseMs, marginMs }: RunFact): number {
  let until = since + leaseMs - marginMs;
  for (const renewal of renewals) {
    // One that was heard of after the deadline came too late: by then the worker had given up.
    if (renewal.at > at || renewal.at > until || renewal.since === undefined) continue;
    until = Math.max(until, renewal.since + leaseMs - marginMs);
  }
  return until;
}

/** When the worker, by itself, let go or could not be certain any more. */
export function endOf(lease: Lease): number {
  return Math.min(lease.releasedAt ?? Infinity, lease.until);
}

/** Not one that was over when its worker heard of it: nothing is done under such a lease. */
export function isLive(lease: Lease): boolean {
  return endOf(lease) > lease.grantedAt;
}

export function byKey<T extends { readonly key: string }>(all: readonly T[]): readonly (readonly T[])[] {
  return [...Map.groupBy(all, ({ key }) => key).values()];
}

function nameOf({ by, key, fence }: OfLease): string {
  return `${by} ${fence} ${key}`;
}

function isOfLease(fact: Fact): fact is OfLease {
  return fact.type === "renew" || fact.type === "settle-sent" || fact.type === "settle" || fact.type === "effect-sent";
}
