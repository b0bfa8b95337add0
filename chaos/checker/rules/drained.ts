import type { Evidence } from "../evidence.ts";
import type { Violation } from "../violation.ts";

const WITHIN_MS = 60_000;

/** From the last fault, or the last item if that came later. */
export function drainMs({ history, troubles, submitted }: Evidence): number | undefined {
  const end = history.findLast((fact) => fact.type === "drained");
  if (end === undefined) return undefined;
  let last = 0;
  for (const { to } of troubles.faults) if (to !== Infinity) last = Math.max(last, to);
  for (const { acceptedAt } of submitted.values()) last = Math.max(last, acceptedAt ?? 0);
  return Math.max(0, end.at - last);
}

export function drained(evidence: Evidence): readonly Violation[] {
  const end = evidence.history.findLast((fact) => fact.type === "drained");
  const tookMs = drainMs(evidence);
  if (end === undefined || tookMs === undefined) {
    const { at } = evidence.rules;
    return [{ rule: "drained", at, text: "The history ends before everything was done." }];
  }
  if (end.left === 0 && tookMs <= WITHIN_MS) return [];
  const text = `${(tookMs / 1_000).toFixed(1)} s after the last fault and the last item, at ${evidence.time(end.at)}, ${end.left} items were left.`;
  return [{ rule: "drained", at: end.at, text }];
}
