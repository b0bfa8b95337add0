/** One line per metric, on it a mark for each that Baton is held against: to the right of 1 Baton is better. */
import { TIE } from "../ratios.ts";
import type { Comparison } from "../report.ts";
import { logarithmic, short, steps } from "./scale.ts";
import { element, label, line, mark, type Markup, picture, whisker } from "./svg.ts";

const WIDTH = 900;
const LEFT = 390;
const RIGHT = 870;
const STEP = 22;
/** Where the first line would begin if there were no legend. */
const HEAD = 76;
const LEGEND_STEP = 20;
const LEGEND_LEFT = 24;
/** What is beyond is drawn at the edge: a peer that polls once a second would squeeze all others together. */
const WIDEST = [0.02, 200] as const;

export function ratioChart(title: string, says: string, { others, rows }: Comparison): string {
  const found = rows.flatMap(({ ratios }) => ratios.flatMap((ratio) => (ratio === undefined ? [] : [ratio.median])));
  const domain = [
    Math.max(WIDEST[0], Math.min(1 / 3, ...found.map((one) => one * 0.8))),
    Math.min(WIDEST[1], Math.max(3, ...found.map((one) => one * 1.25))),
  ] as const;
  const scale = logarithmic(domain, [LEFT, RIGHT]);
  const marks = legendOf(others.map((other) => other.title));
  const top = HEAD + marks.lines * LEGEND_STEP;
  const bottom = top + rows.length * STEP;
  const tie = [scale(1 / TIE), scale(TIE)] as const;
  const content: Markup[] = [
    element("rect", { x: tie[0], y: top - 8, width: tie[1] - tie[0], height: bottom - top + 8, class: "band" }),
    ...steps(domain).flatMap((value) => [
      line(scale(value), top - 8, scale(value), bottom, value === 1 ? "whisker" : "line"),
      label(scale(value), bottom + 14, `${short(value)} ×`, { class: "soft small", "text-anchor": "middle" }),
    ]),
    label(tie[0] - 6, top - 14, "Baton is worse", { class: "soft small", "text-anchor": "end" }),
    label(tie[1] + 6, top - 14, "Baton is better", { class: "soft small" }),
    ...marks.drawn,
  ];
  for (const [index, { row, ratios }] of rows.entries()) {
    const y = top + index * STEP + STEP / 2;
    content.push(label(LEFT - 12, y + 4, row.title, { "text-anchor": "end", class: "small" }));
    for (const [series, ratio] of ratios.entries()) {
      if (ratio === undefined) continue;
      // Side by side where they would hide each other.
      const at = y + (series - (ratios.length - 1) / 2) * (12 / Math.max(ratios.length, 1));
      if (ratio.count > 1) content.push(whisker(scale(ratio.low), scale(ratio.high), at));
      content.push(mark(scale(ratio.median), at, series));
    }
  }
  const foot = `Median of the ratios of each round, with whiskers from the lowest to the highest. Grey band: under ${TIE} × either way.`;
  content.push(label(20, bottom + 34, foot, { class: "soft small" }));
  return picture(WIDTH, bottom + 48, title, says, content);
}

function legendOf(titles: readonly string[]): { readonly drawn: readonly Markup[]; readonly lines: number } {
  let x = LEGEND_LEFT;
  let lines = 1;
  const drawn = titles.flatMap((title, series) => {
    // About the width of its letters, for nobody can measure text here.
    const width = title.length * 6.4 + 34;
    if (x + width > WIDTH) {
      x = LEGEND_LEFT;
      lines += 1;
    }
    const [at, y] = [x, HEAD - 42 + lines * LEGEND_STEP];
    x += width;
    return [mark(at, y, series), label(at + 10, y + 4, title, { class: "small" })];
  });
  return { drawn, lines };
}
