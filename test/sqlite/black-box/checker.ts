/**
 * Judges a history. It knows nothing of the engines and shares no code with them; it knows only what was promised.
 * A fact may be written down a little after it happened, and each rule is made so that this cannot raise a false alarm.
 */
import type { Fact } from "./history.ts";

/** One run of a handler, under one fence, for as long as its worker could be certain of the lease. */
interface Run {
  readonly fence: number;
  readonly key: string;
  readonly item: string;
  readonly worker: string;
  readonly from: number;
  readonly to: number;
  readonly endedAt: number | undefined;
  readonly settled: boolean;
}

type Submitted = Extract<Fact, { type: "submitted" }>;

/** Every promise that was not kept, in a sentence; none for a good history. */
export function violations(history: readonly Fact[]): readonly string[] {
  const submitted = history.filter((fact) => fact.type === "submitted");
  const runs = runsOf(history);
  return [
    ...fencesGivenTwice(history),
    ...overlaps(runs),
    ...settledAfterLoss(runs),
    ...doneTwice(runs),
    ...outOfOrder(submitted, runs),
    ...lost(submitted, history),
  ];
}

export function runsOf(history: readonly Fact[]): readonly Run[] {
  const runs: Run[] = [];
  for (const [fence, facts] of Map.groupBy(history.filter(isOfRun), (fact) => fact.fence)) {
    for (const began of facts.filter((fact) => fact.type === "began")) {
      const { key, item, worker, at: from } = began;
      const own = facts.filter((fact) => fact.type !== "renewed" && fact.item === item);
      const endedAt = own.find((fact) => fact.type === "ended")?.at;
      const killedAt = history.find((fact) => fact.type === "killed" && fact.worker === worker)?.at;
      const renewals = facts.filter((fact) => fact.type === "renewed" && fact.at >= from);
      const until = Math.max(began.until, ...renewals.map((fact) => (fact.type === "renewed" ? fact.until : 0)));
      const to = Math.min(until, endedAt ?? Infinity, killedAt ?? Infinity);
      const settled = own.some((fact) => fact.type === "settled");
      runs.push({ fence, key, item, worker, from, to, endedAt, settled });
    }
  }
  return runs;
}

/** Several items of one run have the same fence, and the same worker. */
function fencesGivenTwice(history: readonly Fact[]): readonly string[] {
  const began = history.filter((fact) => fact.type === "began");
  return [...Map.groupBy(began, ({ key, fence }) => `fence ${fence} of ${key}`)]
    .filter(([, facts]) => {
      const items = new Set(facts.map(({ item }) => item));
      return items.size < facts.length || new Set(facts.map(({ worker }) => worker)).size > 1;
    })
    .map(([name, facts]) => `${name} was given ${facts.length} times`);
}

/** By their fences, the runs of a key follow one another: one ends, or is certainly over, before the next begins. */
function overlaps(runs: readonly Run[]): readonly string[] {
  return perKey(runs).flatMap((ofKey) => {
    const found: string[] = [];
    let longest: Run | undefined;
    for (const run of ofKey) {
      // A process that stood still may begin when its lease is long over. It knows, and does nothing.
      if (run.to <= run.from) continue;
      if (longest !== undefined && run.from < longest.to) {
        found.push(
          `${run.key}: ${run.worker} (fence ${run.fence}) began at ${run.from.toFixed(1)}, and ${longest.worker} (fence ${longest.fence}) had it until ${longest.to.toFixed(1)}`,
        );
      }
      if (longest === undefined || run.to > longest.to) longest = run;
    }
    return found;
  });
}

/** Who ended after another had begun was too late, and must have been refused. */
function settledAfterLoss(runs: readonly Run[]): readonly string[] {
  return perKey(runs).flatMap((ofKey) =>
    ofKey.flatMap((run, index) => {
      const next = ofKey[index + 1];
      if (!run.settled || run.endedAt === undefined || next === undefined || next.from >= run.endedAt) return [];
      return [
        `${run.key}: ${run.worker} (fence ${run.fence}) settled after ${next.worker} (fence ${next.fence}) began`,
      ];
    }),
  );
}

function doneTwice(runs: readonly Run[]): readonly string[] {
  const settled = runs.filter((run) => run.settled);
  return [...Map.groupBy(settled, ({ item }) => item)]
    .filter(([, ofItem]) => ofItem.length > 1)
    .map(([item, ofItem]) => `${item} was accepted as done ${ofItem.length} times`);
}

/** Of one key and level, what was acknowledged before another was asked for begins before it. */
function outOfOrder(submitted: readonly Submitted[], runs: readonly Run[]): readonly string[] {
  const firstBegan = new Map<string, number>();
  for (const { item, from } of runs) firstBegan.set(item, Math.min(from, firstBegan.get(item) ?? Infinity));
  return [...Map.groupBy(submitted, ({ key, level }) => JSON.stringify([key, level])).values()].flatMap((line) => {
    const inOrder = line.toSorted((a, b) => a.from - b.from);
    // The one that began last of all those that were acknowledged before: nobody behind them may be earlier.
    const byAcknowledgement = line.toSorted((a, b) => a.at - b.at);
    const found: string[] = [];
    let latest: { readonly item: string; readonly began: number } | undefined;
    let index = 0;
    for (const { item, key, level, from } of inOrder) {
      for (; (byAcknowledgement[index]?.at ?? Infinity) < from; index += 1) {
        const ahead = byAcknowledgement[index]?.item ?? "";
        const began = firstBegan.get(ahead) ?? Infinity;
        if (latest === undefined || began > latest.began) latest = { item: ahead, began };
      }
      const began = firstBegan.get(item) ?? Infinity;
      if (latest !== undefined && began < latest.began)
        found.push(`${key}, ${level}: ${item} began before ${latest.item}, which came first`);
    }
    return found;
  });
}

function lost(submitted: readonly Submitted[], history: readonly Fact[]): readonly string[] {
  const finals = new Map<string, string>();
  for (const fact of history) if (fact.type === "final") finals.set(fact.item, fact.state);
  return submitted
    .filter(({ item }) => finals.get(item) !== "done")
    .map(({ item }) => `${item} was acknowledged and in the end is ${finals.get(item) ?? "unknown"}`);
}

/** In the order of their fences, and within a run. */
function perKey(runs: readonly Run[]): readonly (readonly Run[])[] {
  return [...Map.groupBy(runs, ({ key }) => key).values()].map((ofKey) =>
    ofKey.toSorted((a, b) => a.fence - b.fence || a.from - b.from),
  );
}

function isOfRun(fact: Fact): fact is Extract<Fact, { fence: number }> {
  return "fence" in fact;
}
