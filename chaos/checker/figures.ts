/** What a run amounted to, in numbers. */
import type { Evidence } from "./evidence.ts";
import { drainMs } from "./rules/drained.ts";
import { pickUpsOf } from "./rules/prompt.ts";
import { repeatsOf } from "./rules/repeats.ts";
import { takeoversOf } from "./rules/takeover.ts";

export interface Figures {
  readonly forMs: number;
  readonly accepted: number;
  readonly unknown: number;
  readonly leases: number;
  readonly effects: number;
  /** Effects of stale workers that the registers refused. */
  readonly refused: number;
  readonly faults: number;
  readonly faultsByKind: Readonly<Record<string, number>>;
  readonly repeats: number;
  readonly repeatsExplained: number;
  readonly takeovers: number;
  readonly takeoversCounted: number;
  readonly takeoverP50Ms: number | undefined;
  readonly takeoverP99Ms: number | undefined;
  readonly pickUpP50Ms: number | undefined;
  readonly pickUpP99Ms: number | undefined;
  readonly drainMs: number | undefined;
  /** Times at which the store answered nobody, and no fault of everybody went on. */
  readonly silences: number;
  /** Of a worker to the store: renewals and settlements. */
  readonly longestCallMs: number;
}

export function figuresOf(evidence: Evidence): Figures {
  const { history, judged, leases, rules, submitted, troubles } = evidence;
  const all = [...submitted.values()].filter(({ isCopy }) => !isCopy);
  const repeats = repeatsOf(evidence);
  const takeovers = takeoversOf(evidence);
  const counted = takeovers
    .filter(({ isDisturbed }) => !isDisturbed)
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b);
  const pickUps = pickUpsOf(evidence)
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b);
  const faultsByKind: Record<string, number> = {};
  for (const { kind } of troubles.faults) faultsByKind[kind] = (faultsByKind[kind] ?? 0) + 1;
  return {
    forMs: (history.findLast((fact) => fact.type === "drained")?.at ?? rules.at) - rules.at,
    accepted: all.filter(({ acceptedAt }) => acceptedAt !== undefined).length,
    unknown: all.filter(({ acceptedAt }) => acceptedAt === undefined).length,
    leases: leases.length,
    effects: judged.filter(({ accepted }) => accepted).length,
    refused: judged.filter(({ accepted }) => !accepted).length,
    faults: troubles.faults.length,
    faultsByKind,
    repeats: repeats.length,
    repeatsExplained: repeats.filter(({ explanation }) => explanation !== undefined).length,
    takeovers: takeovers.length,
    takeoversCounted: counted.length,
    takeoverP50Ms: counted[Math.ceil(counted.length * 0.5) - 1],
    takeoverP99Ms: counted[Math.ceil(counted.length * 0.99) - 1],
    pickUpP50Ms: pickUps[Math.ceil(pickUps.length * 0.5) - 1],
    pickUpP99Ms: pickUps[Math.ceil(pickUps.length * 0.99) - 1],
    drainMs: drainMs(evidence),
    silences: troubles.silences.length,
    longestCallMs: troubles.slowCalls.reduce((longest, { from, to }) => Math.max(longest, to - from), 0),
  };
}
