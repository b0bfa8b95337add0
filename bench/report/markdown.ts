/** The page docs/benchmarks.md. */
import type { Row } from "../results.ts";
import type { Subject } from "../subject.ts";
import { formatNumber, formatRatio } from "./format.ts";
import { type Comparison, comparisons, gaps, headline, type Report, TIE } from "./report.ts";
import { spread } from "./table.ts";

export function writeMarkdown(report: Report): string {
  const { at, command, rows, subjects, remarks } = report;
  const measured = rows.filter((row) => row.figures.size > 0);
  return `${[
    "# Benchmarks",
    "",
    `Made by \`${command}\` on ${at.toISOString().slice(0, 10)}; do not edit. Peers run as their own documentation recommends, in the same run on the same machine.`,
    "",
    ...headline(report).map((line) => `- ${line}`),
    "",
    "## How many times better Baton is",
    "",
    `Below 1 it is worse. Anything under ${TIE} × either way is a tie: even clean runs of one configuration differ that much.`,
    "",
    ...comparisons(report).flatMap(comparison),
    "## Figures",
    "",
    "Median, and in brackets the smallest and the largest.",
    "",
    ...table(
      ["", "unit", ...subjects.map(({ title }) => title)],
      measured.map((row) => [row.title, row.metric.unit].concat(subjects.map((subject) => figure(row, subject)))),
    ),
    "",
    "## How each is set up",
    "",
    ...table(
      ["", "survives", "configuration"],
      subjects.map(({ title, durability, setup }) => [title, durability, setup]),
    ),
    ...section("Not measured", gaps(report)),
    ...section(
      "Remarks",
      remarks.map(({ workload, subject, text }) => `${workload} · ${subject}: ${text}`),
    ),
  ].join("\n")}\n`;
}

function comparison({ baseline, others, rows }: Comparison): readonly string[] {
  return [
    `### ${baseline.title}, against each`,
    "",
    ...table(
      ["", ...others.map(({ title }) => title)],
      rows.map(({ title, ratios }) => [title].concat(ratios.map(formatRatio))),
    ),
    "",
  ];
}

function figure({ figures }: Row, { name }: Subject): string {
  const found = figures.get(name);
  if (found === undefined) return "";
  const range = spread(found);
  return range === "" ? formatNumber(found.median) : `${formatNumber(found.median)} (${range})`;
}

/** Padded as the formatter of this repository would, so that the page needs no second touch. */
function table(head: readonly string[], lines: readonly (readonly string[])[]): readonly string[] {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...lines].map((line) => (line[column] ?? "").length)));
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [row(head), row(widths.map((width) => "-".repeat(width))), ...lines.map(row)];
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ["", `## ${title}`, "", ...lines.map((line) => `- ${line}`)];
}
