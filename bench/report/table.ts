/** For the terminal: ratios first, then the figures. */
import { formatRatio, formatSummary } from "./format.ts";
import { TIE_RULE } from "./ratios.ts";
import type { Comparison, Report, Row } from "./report.ts";
import { gaps, headline, reliability, remarkLines } from "./words.ts";

export function writeTable(report: Report): string {
  return [
    "",
    ...headline(report),
    ...reliability(report),
    ...(report.comparisons.length === 0 ? [] : ["Ratios: below 1 Baton is worse.", TIE_RULE]),
    "",
    ...report.comparisons.flatMap(comparison),
    ...report.rows.flatMap((row) => details(row, report)),
    ...list("Not measured:", gaps(report)),
    ...list("Remarks:", remarkLines(report)),
  ].join("\n");
}

function comparison({ baseline, sameClass, others, rows }: Comparison): readonly string[] {
  const durability = sameClass ? "as durable" : "of another durability";
  return [
    `How many times better is ${baseline.title}? Against what is ${durability}:`,
    "",
    ...align([
      ["", ...others.map(({ name }) => name)],
      ...rows.map(({ row, ratios }) => [row.title].concat(ratios.map(formatRatio))),
    ]),
    "",
  ];
}

function list(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`), ""];
}

function details({ title, metric, figures }: Row, { subjects }: Report): readonly string[] {
  const lines = subjects.flatMap((subject) => {
    const figure = figures.get(subject.name);
    return figure === undefined ? [] : [[`  ${subject.title}`, formatSummary(figure)]];
  });
  return [`${title} (${metric.unit}, ${metric.better} is better)`, ...align(lines), ""];
}

/** The first column to the left, the others to the right. */
function align(lines: readonly (readonly string[])[]): readonly string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines.map((line) =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}
