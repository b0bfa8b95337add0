import type { Judgement } from "../checker/check.ts";
import { figuresOf } from "../checker/figures.ts";
import { type Rule, RULES } from "../checker/violation.ts";
import { figureRows } from "./figure-rows.ts";

/** So many of one rule tell the story; the rest is in the histories. */
const MOST_SHOWN = 5;

export function textReport(judgement: Judgement): string {
  const { evidence, violations, unjudged, gaps } = judgement;
  const { store, seed, control } = evidence.rules;
  const byRule = Map.groupBy(violations, ({ rule }) => rule);
  const lines = [
    verdictOf(judgement),
    ...gaps.map((gap) => `- ${gap}`),
    "",
    `${store}, seed ${seed}${control === undefined ? "" : `, with the planted flaw "${control}"`}`,
    ...figureRows(figuresOf(evidence)).map(({ name, value }) => `  ${name.padEnd(34)} ${value}`),
    "",
    ...rules().map(([rule, promise]) => {
      const broken = byRule.get(rule)?.length ?? 0;
      const verdict = broken > 0 ? "BROKEN " : unjudged.has(rule) ? "too few" : gaps.length > 0 ? "?      " : "kept   ";
      return `  ${verdict}  ${promise}${broken === 0 ? "" : ` (${broken} times)`}`;
    }),
    ...[...byRule.values()].flatMap((ofRule) => ofRule.slice(0, MOST_SHOWN).map(({ text }) => `\n- ${text}`)),
  ];
  return `${lines.join("\n")}\n`;
}

export function verdictOf({ violations, unjudged, gaps }: Judgement): string {
  const { length } = violations;
  if (length > 0) {
    const broken = `BROKEN: ${length} violation${length === 1 ? "" : "s"} of what was promised`;
    return gaps.length === 0 ? `${broken}.` : `${broken}; but the run is not whole, which may be why.`;
  }
  if (gaps.length > 0)
    return "PROVES NOTHING: no promise was broken, but the run is not one that could have broken them.";
  if (unjudged.size > 0) return "GOOD: every promise that could be judged was kept. There was too little to judge all.";
  return "GOOD: every promise was kept.";
}

export function rules(): readonly (readonly [rule: Rule, promise: string])[] {
  return Object.entries(RULES).flatMap(([name, promise]) => (isRule(name) ? [[name, promise] as const] : []));
}

function isRule(name: string): name is Rule {
  return name in RULES;
}
