/** What an item costs while ever more are waiting, as a multiple of what it costs at the first level. */
import type { SubjectRecord } from "../../record.ts";
import type { Row } from "../report.ts";
import { linear, logarithmic, type Scale, short } from "./scale.ts";
import { element, label, line, mark, type Markup, picture, point, SERIES } from "./svg.ts";

const WIDTH = 900;
const LEFT = 60;
const RIGHT = 620;
const TOP = 52;
const PANEL = 210;
const PANEL_HEAD = 30;
const PANEL_FOOT = 34;
/** What the design asks of every engine, from the first level to the last. */
const GOAL = 1.3;
const LEAST_TOP = 2;
const LABEL_STEP = 15;

export interface Growth {
  readonly title: string;
  readonly points: readonly { readonly level: number; readonly row: Row }[];
}

interface Line {
  readonly series: number;
  readonly title: string;
  readonly points: readonly {
    readonly level: number;
    readonly median: number;
    readonly low: number;
    readonly high: number;
  }[];
}

export function lineChart(
  title: string,
  says: string,
  panels: readonly Growth[],
  subjects: readonly SubjectRecord[],
): string {
  // Colours go to those that are drawn, and are the same in every panel.
  const drawn = subjects.filter(({ name }) =>
    panels.some((growth) => growth.points.some(({ row }) => row.figures.has(name))),
  );
  const content = panels.flatMap((growth, index) =>
    panel(growth, linesOf(growth, drawn), TOP + index * (PANEL + PANEL_HEAD + PANEL_FOOT)),
  );
  const height = TOP + panels.length * (PANEL + PANEL_HEAD + PANEL_FOOT);
  const foot = `Cost of an item as a multiple of its cost at the first level; whiskers from the lowest to the highest cycle. Dashed: the goal, ${GOAL} ×.`;
  content.push(label(20, height + 6, foot, { class: "soft small" }));
  return picture(WIDTH, height + 22, title, says, content);
}

function linesOf({ points }: Growth, subjects: readonly SubjectRecord[]): readonly Line[] {
  return subjects.flatMap(({ name, title }, series) => {
    const figures = points.flatMap(({ level, row }) => {
      const figure = row.figures.get(name);
      return figure === undefined ? [] : [{ level, figure }];
    });
    const base = figures[0]?.figure.median;
    if (base === undefined || figures.length < 2) return [];
    const relative = figures.map(({ level, figure: { median, low, high } }) => ({
      level,
      median: median / base,
      low: low / base,
      high: high / base,
    }));
    return [{ series, title, points: relative }];
  });
}

function panel({ title, points }: Growth, lines: readonly Line[], y: number): readonly Markup[] {
  const levels = points.map(({ level }) => level);
  const [top, bottom] = [y + PANEL_HEAD, y + PANEL_HEAD + PANEL];
  const highest = Math.max(LEAST_TOP, ...lines.flatMap((one) => one.points.map(({ median }) => median * 1.1)));
  const across = logarithmic([Math.min(...levels), Math.max(...levels)], [LEFT, RIGHT]);
  const up = linear([0, highest], [bottom, top]);
  const step = highest > 8 ? Math.ceil(highest / 8) : highest > 4 ? 1 : 0.5;
  const grid = Array.from({ length: Math.floor(highest / step) + 1 }, (_, index) => index * step).flatMap((value) => [
    line(LEFT, up(value), RIGHT, up(value), "line"),
    label(LEFT - 8, up(value) + 4, `${value} ×`, { class: "soft small", "text-anchor": "end" }),
  ]);
  return [
    label(20, y + 14, title, { class: "head" }),
    ...grid,
    line(LEFT, up(GOAL), RIGHT, up(GOAL), "goal"),
    ...levels.map((level) =>
      label(across(level), bottom + 16, `${short(level)} waiting`, { class: "soft small", "text-anchor": "middle" }),
    ),
    ...lines.flatMap((one) => curve(one, across, up)),
    ...endLabels(lines, across, up, top),
  ];
}

function curve({ series, points }: Line, across: Scale, up: Scale): readonly Markup[] {
  const places = points.map(({ level, median }) => [across(level), up(median)] as const);
  return [
    element("polyline", { points: places.map(point).join(" "), class: `l${series % SERIES}`, "stroke-width": 2 }),
    ...points.map(({ level, low, high }) => line(across(level), up(low), across(level), up(high), "whisker")),
    ...places.map(([x, y]) => mark(x, y, series)),
  ];
}

/** At the right, in the order of the lines' ends, and never one over the other. */
function endLabels(lines: readonly Line[], across: Scale, up: Scale, top: number): readonly Markup[] {
  const ends = lines
    .flatMap((one) => {
      const last = one.points.at(-1);
      return last === undefined ? [] : [{ ...one, last, y: up(last.median) }];
    })
    .toSorted((a, b) => a.y - b.y);
  let next = top;
  return ends.flatMap(({ series, title, last, y }) => {
    const at = Math.max(y, next);
    next = at + LABEL_STEP;
    const text = `${title}, ${last.median.toFixed(2)} × at ${short(last.level)}`;
    return [
      line(across(last.level) + 7, y, RIGHT + 14, at, "line"),
      mark(RIGHT + 20, at, series),
      label(RIGHT + 30, at + 4, text, { class: "small" }),
    ];
  });
}
