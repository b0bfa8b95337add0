/** Whether a second run bears out the ratios of a first, within the spread that the first has stated. */
import { formatRatio, formatTimes } from "./format.ts";
import { isTie } from "./ratios.ts";
import type { Report } from "./report.ts";
import type { Summary } from "./statistics.ts";

/** What the stated spread promises. */
const PROMISED = 0.9;

interface Pair {
  readonly title: string;
  readonly first: Summary;
  readonly second: Summary;
  readonly within: boolean;
  /** One says better, the other worse, and neither calls it a tie. */
  readonly contrary: boolean;
}

export function agrees(first: Report, second: Report): boolean {
  const pairs = pairsOf(first, second);
  // Runs that have nothing in common do not agree: nothing was compared.
  return pairs.length > 0 && pairs.filter(({ within }) => within).length >= pairs.length * PROMISED;
}

export function writeAgreement(first: Report, second: Report): string {
  const pairs = pairsOf(first, second);
  if (pairs.length === 0) return "The two runs have no ratio in common: nothing can be compared.\n";
  const outside = pairs.filter(({ within }) => !within).toSorted((a, b) => distance(b) - distance(a));
  const contrary = pairs.filter((pair) => pair.contrary).length;
  return [
    `${pairs.length - outside.length} of ${pairs.length} ratios of the second run lie within the rounds of the first, widened by its stated spread of ${formatTimes(widening(first))}.`,
    `${contrary} are contrary: better in one, worse in the other, and a tie in neither.`,
    ...outside.map(
      (pair) =>
        `  ${pair.title}: ${formatRatio(pair.first)}, then ${formatRatio(pair.second)}${pair.contrary ? ", contrary" : ""}`,
    ),
    "",
  ].join("\n");
}

function pairsOf(first: Report, second: Report): readonly Pair[] {
  const theirs = ratiosOf(second);
  const by = widening(first);
  return Array.from(ratiosOf(first), ([title, own]) => {
    const other = theirs.get(title);
    if (other === undefined) return undefined;
    return {
      title,
      first: own,
      second: other,
      within: other.median >= own.low / by && other.median <= own.high * by,
      contrary: !isTie(own) && !isTie(other) && own.median > 1 !== other.median > 1,
    };
  }).filter((pair) => pair !== undefined);
}

function ratiosOf({ comparisons }: Report): ReadonlyMap<string, Summary> {
  const named = comparisons.flatMap(({ baseline, others, rows }) =>
    rows.flatMap(({ row, ratios }) =>
      others.flatMap((other, index) => {
        const ratio = ratios[index];
        return ratio === undefined ? [] : [[`${row.title}: ${baseline.title} to ${other.title}`, ratio] as const];
      }),
    ),
  );
  return new Map(named);
}

function widening({ spread }: Report): number {
  return spread?.nineOfTen ?? 1;
}

function distance({ first, second }: Pair): number {
  return Math.abs(Math.log(first.median / second.median));
}
