/**
 * An item under a lease, as its worker lived it: from the moment it heard of it until it let go, or could not be certain any more. The items of a
 * run share their lease, one after the other: each begins when the one before it has ended.
 */
import type { EffectSent, Fact, Granted, Renewed, RunFact, SettleAnswered, SettleSent } from "../history/fact.ts";

export interface Lease extends Pick<Granted, "by" | "item" | "id" | "key" | "level" | "fence" | "attempt" | "since"> {
  /** When its worker heard of it; of a further item of a run: when it began. */
  readonly grantedAt: number;
  /** Its place in the run. */
  readonly place: number;
  /** So many items the lease covered. */
  readonly covered: number;
  /** The local deadline in the end, by what the worker heard in time. */
  readonly until: number;
  /** When it first told the store of its end, or went on to the next item of its run. */
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
  return grants.flatMap((grant) => runOf(grant, others.get(nameOf(grant)) ?? [], rules));
}

/** What the history says of one item of a run. */
interface Piece {
  readonly place: number;
  readonly item: string;
  readonly id: string;
  readonly attempt: number;
  readonly begunAt: number;
  readonly asked: readonly SettleSent[];
  readonly answers: readonly SettleAnswered[];
  readonly effects: readonly EffectSent[];
}

/** Those that were begun, for all that can be seen. */
function runOf(grant: Granted, facts: readonly OfLease[], rules: RunFact): readonly Lease[] {
  const run = [grant, ...(grant.behind ?? [])];
  const pieces = run.flatMap(({ item, id, attempt }, place): readonly Piece[] => {
    const effects = facts.filter((fact) => fact.type === "effect-sent").filter((fact) => fact.item === item);
    const asked = facts.flatMap((fact) => sentOf(fact, item));
    const answers = facts.flatMap((fact) => answerOf(fact, item));
    // What is given back without having changed anything was not begun.
    const signs = [...effects, ...asked.filter(({ ending }) => ending !== "release")].map(({ at }) => at);
    const begunAt = place === 0 ? grant.at : Math.min(...signs);
    return begunAt === Infinity ? [] : [{ place, item, id, attempt, begunAt, asked, answers, effects }];
  });
  return pieces.map((piece, index) => leaseOf(grant, piece, pieces[index + 1]?.begunAt, facts, rules));
}

/** The report said how this item ended, as the last of its run or before it. */
function sentOf(fact: OfLease, item: string): readonly SettleSent[] {
  if (fact.type === "settle-sent" && fact.item === item) return [fact];
  if (fact.type !== "settle-sent" && fact.type !== "renew") return [];
  const ended = fact.ended?.find((one) => one.item === item);
  if (ended === undefined) return [];
  const { by, key, fence } = fact;
  const at = fact.type === "renew" ? fact.sentAt : fact.at;
  return [{ type: "settle-sent", at, by, item, key, fence, ending: ended.ending }];
}

function answerOf(fact: OfLease, item: string): readonly SettleAnswered[] {
  if (fact.type === "settle" && fact.item === item) return [fact];
  if (fact.type !== "settle" && fact.type !== "renew") return [];
  const ended = fact.ended?.find((one) => one.item === item);
  if (ended === undefined) return [];
  const { at, by, key, fence, outcome } = fact;
  return [{ type: "settle", at, by, item, key, fence, ending: ended.ending, outcome }];
}

function leaseOf(
  grant: Granted,
  { place, item, id, attempt, begunAt, asked, answers, effects }: Piece,
  nextBegunAt: number | undefined,
  facts: readonly OfLease[],
  rules: RunFact,
): Lease {
  const { by, key, level, fence, since } = grant;
  const renewals = facts.filter((fact) => fact.type === "renew");
  const [sent] = asked;
  // Asked again after a lost answer, the store may say that there is nothing to end any more: the first yes counts.
  const settled = answers.find(({ outcome }) => outcome === "ok") ?? answers.at(-1);
  const releasedAt = Math.min(sent?.at ?? Infinity, nextBegunAt ?? Infinity);
  return {
    by,
    item,
    id,
    key,
    level,
    fence,
    attempt,
    since,
    place,
    covered: 1 + (grant.behind?.length ?? 0),
    grantedAt: begunAt,
    renewals,
    settled,
    until: deadline(since, renewals, Infinity, rules),
    releasedAt: releasedAt === Infinity ? undefined : releasedAt,
    ending: sent?.ending,
    delayMs: sent?.delayMs ?? 0,
    refusedAt: answers.find(({ outcome }) => outcome === "fail")?.at,
    mayHaveEnded:
      asked.some(({ ending }) => ENDS.has(ending)) &&
      (answers.length < asked.length || answers.some(({ outcome }) => outcome !== "fail")),
    effects,
  };
}

/** Of two items of a key: this one ran first, by their fences, and by their places in one run. */
export function ranBefore(one: Lease, other: Lease): boolean {
  return one.fence === other.fence ? one.place < other.place : one.fence < other.fence;
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
