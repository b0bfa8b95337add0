/** Which pictures a report has. */
import type { WorkloadGroup } from "../../subject.ts";
import type { Comparison, Report, Row } from "../report.ts";
import { barChart } from "./bar-chart.ts";
import { type Growth, lineChart } from "./line-chart.ts";
import { ratioChart } from "./ratio-chart.ts";

export interface Chart {
  readonly file: string;
  /** What it shows, for those who cannot see it; the figures stand in the table beside it. */
  readonly alt: string;
  readonly svg: string;
}

export const GROUP_TITLES: Readonly<Record<WorkloadGroup, string>> = {
  submit: "Submitting",
  drain: "Draining, a key per item",
  latency: "From submit to the start of the handler",
  keyed: "Keyed exclusive work",
  next: "From the end of an item to the start of its key's next",
  "hot-key": "One hot key",
  memory: "Memory",
  backlog: "Growth with the backlog",
};

/** Of Baton on one store against what is as durable. */
export function ratiosChart(comparison: Comparison): Chart {
  const { baseline, others } = comparison;
  const title = `How many times better is ${baseline.title}?`;
  const alt = `How many times better ${baseline.title} is, by workload, than ${listed(others.map((other) => other.title))}; the table below has the same figures`;
  return { file: `ratios-${baseline.name}.svg`, alt, svg: ratioChart(title, alt, comparison) };
}

/** Undefined: there is nothing to draw. */
export function groupChart(group: WorkloadGroup, report: Report): Chart | undefined {
  const rows = report.rows.filter((row) => row.workload.group === group && row.metric.unit !== "×");
  if (rows.length === 0) return undefined;
  return group === "backlog" ? growthChart(rows, report) : barsOf(group, rows, report);
}

function barsOf(group: WorkloadGroup, rows: readonly Row[], { subjects }: Report): Chart {
  const title = GROUP_TITLES[group];
  const alt = `${title}: ${rows.map(best(subjects)).join("; ")}; the table below has all figures`;
  return { file: `${group}.svg`, alt, svg: barChart(title, alt, rows, subjects) };
}

function best(subjects: Report["subjects"]): (row: Row) => string {
  return ({ title, metric, figures }) => {
    const values = subjects.flatMap((subject) => {
      const figure = figures.get(subject.name);
      return figure === undefined || subject.ceiling === true ? [] : [{ title: subject.title, value: figure.median }];
    });
    const sorted = values.toSorted((a, b) => (metric.better === "higher" ? b.value - a.value : a.value - b.value));
    return `${title}: best is ${sorted[0]?.title ?? "nobody"}`;
  };
}

const LEVEL = /^(submit|work)-(\d+)$/;

function growthChart(rows: readonly Row[], { subjects }: Report): Chart | undefined {
  const panels = new Map<string, Growth["points"]>();
  for (const row of rows) {
    const [, step, level] = LEVEL.exec(row.metric.name) ?? [];
    if (step === undefined || level === undefined) continue;
    const name = `${row.workload.title}: ${step === "submit" ? "submit" : "claim and settle"}`;
    panels.set(name, [...(panels.get(name) ?? []), { level: Number(level), row }]);
  }
  const growths = Array.from(panels, ([title, points]) => ({
    title,
    points: points.toSorted((a, b) => a.level - b.level),
  })).filter(({ points }) => points.length > 1);
  if (growths.length === 0) return undefined;
  const title = GROUP_TITLES.backlog;
  const alt =
    "What submitting, and claiming and settling, an item costs as the backlog grows, as a multiple of the cost at the first level; the table below has all figures";
  return { file: "growth.svg", alt, svg: lineChart(title, alt, growths, subjects) };
}

function listed(titles: readonly string[]): string {
  return titles.length < 2 ? titles.join("") : `${titles.slice(0, -1).join("; ")}; and ${titles.at(-1) ?? ""}`;
}
