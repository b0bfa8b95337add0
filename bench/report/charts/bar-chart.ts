/** One panel per metric, in it a bar per subject, the best first, with whiskers from the lowest to the highest round. */
import { formatSummary } from "../format.ts";
import type { SubjectRecord } from "../../record.ts";
import type { Row } from "../report.ts";
import type { Summary } from "../statistics.ts";
import { linear, logarithmic, powersOfTen, type Scale, short } from "./scale.ts";
import { element, label, line, type Markup, picture, whisker, words } from "./svg.ts";

const WIDTH = 900;
const LEFT = 250;
const RIGHT = 670;
const BAR = 15;
const STEP = 21;
const TOP = 52;
const PANEL_HEAD = 26;
const PANEL_FOOT = 14;

interface Bar {
  readonly subject: SubjectRecord;
  readonly figure: Summary;
}

export function barChart(
  title: string,
  says: string,
  rows: readonly Row[],
  subjects: readonly SubjectRecord[],
): string {
  const content: Markup[] = [];
  let y = TOP;
  for (const row of rows) {
    const bars = barsOf(row, subjects);
    content.push(...panel(row, bars, y));
    y += PANEL_HEAD + bars.length * STEP + PANEL_FOOT + (isLogarithmic(bars) ? 12 : 0);
  }
  content.push(legend(y + 4));
  return picture(WIDTH, y + 22, title, says, content);
}

function barsOf({ figures, metric }: Row, subjects: readonly SubjectRecord[]): readonly Bar[] {
  const direction = metric.better === "higher" ? -1 : 1;
  return subjects
    .flatMap((subject) => {
      const figure = figures.get(subject.name);
      return figure === undefined ? [] : [{ subject, figure }];
    })
    .toSorted((a, b) => direction * (a.figure.median - b.figure.median));
}

/** Where bars would be too short to be seen: then they are points, for the length of a bar would say nothing. */
function isLogarithmic(bars: readonly Bar[]): boolean {
  const values = bars.map(({ figure }) => figure.median).filter((value) => value > 0);
  return values.length > 0 && Math.max(...values) > 60 * Math.min(...values);
}

function panel({ title, metric }: Row, bars: readonly Bar[], y: number): readonly Markup[] {
  const log = isLogarithmic(bars);
  const bottom = y + PANEL_HEAD + bars.length * STEP;
  const scale = log ? logScale(bars) : linearScale(bars);
  const how = `${metric.unit}, ${metric.better} is better${log ? ", each line ten times the one before" : ""}`;
  const heading = element(
    "text",
    { x: 20, y: y + 14, class: "head" },
    words(title),
    element("tspan", { class: "soft small", dx: 10 }, words(how)),
  );
  const lines = log
    ? powersOfTen(scale.domain).flatMap((value) => [
        line(scale.at(value), y + PANEL_HEAD - 4, scale.at(value), bottom, "line"),
        label(scale.at(value), bottom + 11, short(value), { class: "soft small", "text-anchor": "middle" }),
      ])
    : [line(LEFT, y + PANEL_HEAD - 4, LEFT, bottom, "line")];
  return [heading, ...lines, ...bars.flatMap((bar, index) => drawn(bar, scale.at, y + PANEL_HEAD + index * STEP, log))];
}

function drawn({ subject, figure }: Bar, scale: Scale, y: number, log: boolean): readonly Markup[] {
  const { median, low, high, count } = figure;
  const middle = y + BAR / 2;
  const end = Math.max(scale(median), scale(high));
  const name = kindOf(subject);
  const shape = log
    ? element("circle", { cx: scale(median), cy: middle, r: 5.5, class: name })
    : element("rect", { x: LEFT, y, width: Math.max(1.5, scale(median) - LEFT), height: BAR, rx: 2, class: name });
  return [
    label(LEFT - 10, middle + 4, subject.title, { "text-anchor": "end", class: name === "baton" ? "head" : undefined }),
    shape,
    ...(count > 1 ? [whisker(scale(low), scale(high), middle)] : []),
    label(end + 10, middle + 4, formatSummary(figure), { class: "small" }),
  ];
}

function linearScale(bars: readonly Bar[]): { readonly at: Scale; readonly domain: readonly [number, number] } {
  const domain = [0, Math.max(...bars.map(({ figure }) => figure.high), Number.MIN_VALUE)] as const;
  return { at: linear(domain, [LEFT, RIGHT]), domain };
}

function logScale(bars: readonly Bar[]): { readonly at: Scale; readonly domain: readonly [number, number] } {
  const values = bars.flatMap(({ figure: { low, high } }) => [low, high]).filter((value) => value > 0);
  const domain = [
    10 ** Math.floor(Math.log10(Math.min(...values))),
    10 ** Math.ceil(Math.log10(Math.max(...values))),
  ] as const;
  return { at: logarithmic(domain, [LEFT, RIGHT]), domain };
}

function legend(y: number): Markup {
  const text =
    "Median, with whiskers from the lowest to the highest round. Blue: Baton. Dashed: no queue, but what its store could do at best.";
  return label(20, y, text, { class: "soft small" });
}

function kindOf({ package: peer, ceiling }: SubjectRecord): "baton" | "peer" | "ceiling" {
  if (ceiling === true) return "ceiling";
  return peer === undefined ? "baton" : "peer";
}
