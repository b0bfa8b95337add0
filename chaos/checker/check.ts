/**
 * Judges a run by what its processes wrote down. It knows what was promised and nothing of how it is kept: no line of the
 * product is used here. Each rule sorts and walks once, so a history of n facts costs O(n log n).
 */
import type { Fact } from "../history/fact.ts";
import { type Evidence, evidenceOf } from "./evidence.ts";
import { gapsOf } from "./gaps.ts";
import { accounted } from "./rules/accounted.ts";
import { alive } from "./rules/alive.ts";
import { completed } from "./rules/completed.ts";
import { drained } from "./rules/drained.ts";
import { effects } from "./rules/effects.ts";
import { exclusive } from "./rules/exclusive.ts";
import { fences } from "./rules/fences.ts";
import { ids } from "./rules/ids.ts";
import { ordered } from "./rules/ordered.ts";
import { arePickUpsFew, prompt } from "./rules/prompt.ts";
import { repeats } from "./rules/repeats.ts";
import { stale } from "./rules/stale.ts";
import { areTakeoversFew, takeover } from "./rules/takeover.ts";
import type { Rule, Violation } from "./violation.ts";

const CHECKS: Readonly<Record<Rule, (evidence: Evidence) => readonly Violation[]>> = {
  exclusive,
  fences,
  stale,
  effects,
  accounted,
  completed,
  ids,
  ordered,
  repeats,
  alive,
  drained,
  prompt,
  takeover,
};

export interface Judgement {
  readonly evidence: Evidence;
  /** In the order of their times; none for a good run. */
  readonly violations: readonly Violation[];
  /** Rules for which the run had too little to say yes or no. */
  readonly unjudged: ReadonlySet<Rule>;
  /** Why the run proves nothing, in sentences. */
  readonly gaps: readonly string[];
}

/** No promise was broken, and there was enough to break one. */
export function isGood({ violations, gaps }: Judgement): boolean {
  return violations.length === 0 && gaps.length === 0;
}

export function judge(history: readonly Fact[]): Judgement {
  const evidence = evidenceOf(history);
  const violations = Object.values(CHECKS).flatMap((check) => check(evidence));
  return {
    evidence,
    violations: violations.toSorted((a, b) => a.at - b.at),
    unjudged: new Set([
      ...(arePickUpsFew(evidence) ? ["prompt" as const] : []),
      ...(areTakeoversFew(evidence) ? ["takeover" as const] : []),
    ]),
    gaps: gapsOf(evidence),
  };
}
