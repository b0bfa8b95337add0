/** For the terminal: ratios first, then the figures. */
import type { Figure, Row } from "../results.ts";
import { formatNumber, formatRatio } from "./format.ts";
import { type Comparison, comparisons, gaps, headline, type Report, TIE } from "./report.ts";

export function writeTable(report: Report): string {
  const { rows, remarks } = report;
  return [
    ...headline(report),
    "",
    ...comparisons(report).flatMap(comparison),
    ...rows.filter(({ figures }) => figures.size > 0).flatMap((row) => details(row, report)),
    ...list("Not measured:", gaps(report)),
    ...list(
      "Remarks:",
      remarks.map(({ workload, subject, text }) => `${workload} · ${subject}: ${text}`),
    ),
  ].join("\n");
}

function comparison({ baseline, others, rows }: Comparison): readonly string[] {
  return [
    `How many times better is ${baseline.title}? Below 1 it is worse, under ${TIE} × either way is a tie:`,
    "",
    ...align([
      ["", ...others.map(({ name }) => name)],
      ...rows.map(({ title, ratios }) => [title].concat(ratios.map(formatRatio))),
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
    if (figure === undefined) return [];
    return [[`  ${subject.title}`, formatNumber(figure.median), spread(figure)]];
  });
  return [`${title} (${metric.unit}, ${metric.better} is better)`, ...align(lines), ""];
}

export function spread({ min, max }: Figure): string {
  return min === max ? "" : `${formatNumber(min)} – ${formatNumber(max)}`;
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
