/** For the terminal: ratios first, then the figures. */
import { BASELINE } from "../subjects.ts";
import type { Figure, Row } from "../results.ts";
import { formatNumber, formatRatio } from "./format.ts";
import { comparisons, gaps, headline, type Report, TIE } from "./report.ts";

export function writeTable(report: Report): string {
  const { rows, subjects, remarks } = report;
  const others = subjects.filter(({ name }) => name !== BASELINE);
  return [
    ...headline(report),
    "",
    `How many times better Baton on SQLite (FULL) is; below 1 it is worse, under ${TIE} × either way is a tie:`,
    "",
    ...align([
      ["", ...others.map(({ name }) => name)],
      ...comparisons(report).map(({ title, figures }) =>
        [title].concat(others.map(({ name }) => formatRatio(figures.get(name)?.ratio))),
      ),
    ]),
    "",
    ...rows.filter(({ figures }) => figures.size > 0).flatMap((row) => details(row, report)),
    ...list("Not measured:", gaps(report)),
    ...list(
      "Remarks:",
      remarks.map(({ workload, subject, text }) => `${workload} · ${subject}: ${text}`),
    ),
  ].join("\n");
}

function list(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`), ""];
}

function details({ title, metric, figures }: Row, { subjects }: Report): readonly string[] {
  const lines = subjects.flatMap((subject) => {
    const figure = figures.get(subject.name);
    if (figure === undefined) return [];
    const ratio = subject.name === BASELINE ? "" : formatRatio(figure.ratio);
    return [[`  ${subject.title}`, ratio, formatNumber(figure.median), spread(figure)]];
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
