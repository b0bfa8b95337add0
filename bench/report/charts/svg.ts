/** As much of SVG as the charts need, written by hand: colours follow the reader's light or dark mode. */

export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Markup that is ready to be put into a document; made by the functions of this file only. */
export interface Markup {
  readonly markup: string;
}

/** One that can be told from the others by its colour and its mark. */
export const SERIES = 8;

const LIGHT = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#1b7c83", "#59636e"];
const DARK = ["#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#f778ba", "#d29922", "#39c5cf", "#9198a1"];

interface Tones {
  readonly page: string;
  readonly ink: string;
  readonly soft: string;
  readonly grid: string;
  readonly band: string;
  readonly baton: string;
  readonly peer: string;
  readonly series: readonly string[];
}

const STYLE = `text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif}.small{font-size:11px}.title{font-size:16px;font-weight:600}.head{font-weight:600}${tones(
  {
    page: "#ffffff",
    ink: "#1f2328",
    soft: "#59636e",
    grid: "#d1d9e0",
    band: "#f0f2f5",
    baton: "#0969da",
    peer: "#8c959f",
    series: LIGHT,
  },
)}@media (prefers-color-scheme:dark){${tones({
  page: "#0d1117",
  ink: "#f0f6fc",
  soft: "#9198a1",
  grid: "#3d444d",
  band: "#1c2128",
  baton: "#58a6ff",
  peer: "#656c76",
  series: DARK,
})}}`;

function tones({ page, ink, soft, grid, band, baton, peer, series }: Tones): string {
  return [
    `.page{fill:${page}}.band{fill:${band}}`,
    `text{fill:${ink}}.soft{fill:${soft}}`,
    `.line{stroke:${grid};stroke-width:1}.goal{stroke:${soft};stroke-width:1;stroke-dasharray:4 3}`,
    `.whisker{stroke:${ink};stroke-width:1.2;fill:none}`,
    `.baton{fill:${baton}}.peer{fill:${peer}}.ceiling{fill:none;stroke:${peer};stroke-width:1.5;stroke-dasharray:3 2}`,
    ...series.map(
      (colour, index) => `.s${index}{fill:${colour};stroke:${colour}}.l${index}{fill:none;stroke:${colour}}`,
    ),
  ].join("");
}

export function element(name: string, attributes: Attributes, ...children: readonly Markup[]): Markup {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${typeof value === "number" ? round(value) : escape(String(value))}"`)
    .join("");
  const inner = children.map(({ markup }) => markup).join("");
  return { markup: inner === "" ? `<${name}${written}/>` : `<${name}${written}>${inner}</${name}>` };
}

export function words(text: string): Markup {
  return { markup: escape(text) };
}

export function label(x: number, y: number, text: string, attributes: Attributes = {}): Markup {
  return element("text", { x, y, ...attributes }, words(text));
}

export function line(x1: number, y1: number, x2: number, y2: number, name: string): Markup {
  return element("line", { x1, y1, x2, y2, class: name });
}

/** A document of its own, with its title and what it shows in words, for those who cannot see it. */
export function picture(
  width: number,
  height: number,
  title: string,
  says: string,
  content: readonly Markup[],
): string {
  const drawing = element(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${Math.round(width)} ${Math.round(height)}`,
      width: Math.round(width),
      height: Math.round(height),
      role: "img",
      "aria-labelledby": "title says",
    },
    element("title", { id: "title" }, words(title)),
    element("desc", { id: "says" }, words(says)),
    element("style", {}, words(STYLE)),
    element("rect", { class: "page", width: Math.round(width), height: Math.round(height), rx: 6 }),
    label(20, 30, title, { class: "title" }),
    ...content,
  );
  // A line per element, so that a change of the figures is a change of a few lines.
  return `${drawing.markup.replaceAll("><", ">\n<")}\n`;
}

/** Told from the others by shape as well as by colour. */
export function mark(x: number, y: number, series: number): Markup {
  const name = `s${series % SERIES}`;
  const size = 4.5;
  switch (series % 4) {
    case 0:
      return element("circle", { cx: x, cy: y, r: size, class: name });
    case 1:
      return element("rect", { x: x - 4, y: y - 4, width: 8, height: 8, class: name });
    case 2:
      return element("path", { d: path([x, y - 5], [x + 5, y + 4], [x - 5, y + 4]), class: name });
    default:
      return element("path", { d: path([x, y - 5.5], [x + 5.5, y], [x, y + 5.5], [x - 5.5, y]), class: name });
  }
}

/** From the lowest to the highest round. */
export function whisker(low: number, high: number, y: number): Markup {
  const [from, to] = [round(low), round(high)];
  const at = round(y);
  return element("path", { d: `M${from} ${at - 3}v6M${from} ${at}H${to}M${to} ${at - 3}v6`, class: "whisker" });
}

export function path(...[first, ...rest]: readonly (readonly [number, number])[]): string {
  if (first === undefined) return "";
  return `M${point(first)}${rest.map((one) => `L${point(one)}`).join("")}Z`;
}

export function point([x, y]: readonly [number, number]): string {
  return `${round(x)} ${round(y)}`;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export function escape(text: string): string {
  return text.replaceAll(/[&<>"]/g, (found) => ENTITIES[found] ?? found);
}
