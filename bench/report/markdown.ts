/** The page docs/benchmarks.md. */
import { WORKLOAD_GROUPS, type WorkloadGroup } from "../subject.ts";
import { type Chart, GROUP_TITLES, groupChart, ratiosChart } from "./charts/charts.ts";
import { formatRatio, formatSummary } from "./format.ts";
import { TIE_RULE } from "./ratios.ts";
import type { Comparison, Report } from "./report.ts";
import { gaps, headline, reliability, remarkLines, storeLines } from "./words.ts";

export interface Page {
  readonly text: string;
  readonly charts: readonly Chart[];
}

/** What is between two blank lines. Undefined: nothing. */
type Block = string | undefined;

/** `folder`: where its charts will be, seen from the page. */
export function writeMarkdown(report: Report, folder: string): Page {
  const charts: Chart[] = [];
  const shown = (chart: Chart | undefined): Block => {
    if (chart === undefined) return undefined;
    charts.push(chart);
    return `![${chart.alt}](${folder}/${chart.file})`;
  };
  const same = report.comparisons.filter(({ sameClass }) => sameClass);
  const other = report.comparisons.filter(({ sameClass }) => !sameClass);
  const blocks: readonly Block[] = [
    "# Benchmarks",
    "Made by the commands at the end; do not edit. Peers run as their own documentation recommends, in the same run on the same machine.",
    list([...headline(report), ...reliability(report)]),
    "## How many times better Baton is",
    `Against what keeps an accepted item as safely. Below 1 Baton is worse. ${TIE_RULE} In brackets the lowest and the highest round.`,
    ...same.flatMap((one) => [heading(one), shown(ratiosChart(one)), ratios(one)]),
    other.length === 0 ? undefined : "## Against another durability",
    other.length === 0 ? undefined : "Not like with like: one side keeps more than the other.",
    ...other.flatMap((one) => [heading(one), ratios(one)]),
    "## Figures",
    "Median, and in brackets the lowest and the highest round.",
    ...WORKLOAD_GROUPS.flatMap((group) =>
      report.rows.some(({ workload }) => workload.group === group)
        ? [`### ${GROUP_TITLES[group]}`, shown(groupChart(group, report)), figures(report, group)]
        : [],
    ),
    "## How each is set up",
    table(
      ["", "accepted items are", "and survive", "configuration"],
      report.subjects.map(({ title, class: one, durability, setup }) => [title, one, durability, setup]),
    ),
    ...section("Stores", storeLines(report)),
    ...section("Not measured", gaps(report)),
    ...section("Remarks", remarkLines(report)),
    ...section("Made by", commands(report)),
  ];
  return { text: `${blocks.filter((block) => block !== undefined).join("\n\n")}\n`, charts };
}

function heading({ baseline, sameClass }: Comparison): Block {
  return `### ${baseline.title}, against ${sameClass ? "what is as durable" : "the others"}`;
}

function ratios({ others, rows }: Comparison): Block {
  return table(
    ["", ...others.map(({ title }) => title)],
    rows.map(({ row, ratios: found }) => [row.title].concat(found.map(formatRatio))),
  );
}

function figures({ rows, subjects }: Report, group: WorkloadGroup): Block {
  const own = rows.filter(({ workload }) => workload.group === group);
  const measured = subjects.filter(({ name }) => own.some((row) => row.figures.has(name)));
  return table(
    ["", "unit", ...measured.map(({ title }) => title)],
    own.map((row) =>
      [row.title].concat(
        row.metric.unit,
        measured.map(({ name }) => formatSummary(row.figures.get(name))),
      ),
    ),
  );
}

function commands({ runs }: Report): readonly string[] {
  return runs.map(({ at, command, seed }) => `\`${command}\`, seed ${seed}, ${at.slice(0, 16).replace("T", " ")} UTC`);
}

/** Padded as the formatter of this repository would, so that the page needs no second touch. */
function table(head: readonly string[], lines: readonly (readonly string[])[]): Block {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...lines].map((line) => (line[column] ?? "").length)));
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [row(head), row(widths.map((width) => "-".repeat(width))), ...lines.map(row)].join("\n");
}

function section(title: string, lines: readonly string[]): readonly Block[] {
  return lines.length === 0 ? [] : [`## ${title}`, list(lines)];
}

function list(lines: readonly string[]): Block {
  return lines.map((line) => `- ${line}`).join("\n");
}
