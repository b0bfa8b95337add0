/** The live picture, 80 columns wide and at most 22 lines high. A pure function of what is known at a moment. */
import { styleText } from "node:util";
import type { KeyReport } from "../src/index.ts";
import { type HistoryRecord, type Level, LEVELS } from "./history.ts";
import { newsOf } from "./news.ts";
import { CARS, WORKERS } from "./story.ts";
import { strip } from "./strip.ts";

export interface View {
  readonly history: readonly HistoryRecord[];
  readonly keys: readonly KeyReport[];
  /** By the clock of the history. */
  readonly begunAt: number;
  readonly at: number;
  /** By the clock on the wall, which the store's reports go by. */
  readonly wall: number;
}

type Style = Parameters<typeof styleText>[0];

/** The marks differ as well as the colours, for those who see no colours. */
const MARKS: Readonly<Record<Level, string>> = { high: "▲", normal: "●", low: "○" };
const LEVEL_STYLES: Readonly<Record<Level, Style>> = { high: "redBright", normal: "yellow", low: "blue" };
const WORKER_STYLES: readonly Style[] = ["cyan", "magenta", "green", "yellow"];

const WAITING_COLUMNS = 13;
const HOLDER_COLUMNS = 18;
const STRIP_COLUMNS = 40;
const NEWS_LINES = 4;

export function picture(view: View): readonly string[] {
  return [
    title(view),
    "",
    styleText(
      "dim",
      ` ${"CAR".padEnd(6)}${"WORKED ON BY".padEnd(HOLDER_COLUMNS)}${"WAITING".padEnd(WAITING_COLUMNS)}BY WHOM SO FAR`,
    ),
    ...CARS.map((car) => carLine(view, car)),
    "",
    workersLine(view),
    "",
    ...newsLines(view),
    "",
    totals(view),
    legend(),
  ];
}

function title({ begunAt, at }: View): string {
  const name = " Baton: at most one worker per car, urgent items first";
  return styleText("bold", name) + `${((at - begunAt) / 1_000).toFixed(1)} s`.padStart(79 - name.length);
}

function carLine(view: View, car: string): string {
  return ` ${car.padEnd(6)}${holder(view, car)}${waiting(view, car)}${pastOf(view, car)}`;
}

function holder(view: View, car: string): string {
  const running = view.keys.find(({ key }) => key === car)?.running;
  if (running === undefined) return styleText("dim", "·".padEnd(HOLDER_COLUMNS));
  const { worker, id, deadline } = running;
  if (isKilled(view, worker)) {
    const left = (Math.max(0, deadline - view.wall) / 1_000).toFixed(1);
    return styleText("red", `${worker} ✗ ${left} s`.padEnd(HOLDER_COLUMNS));
  }
  const level = levelOf(view, id);
  const rest = level === undefined ? "" : ` ${level}`;
  const mark = level === undefined ? " " : styleText(LEVEL_STYLES[level], MARKS[level]);
  return `${styleText(workerStyle(worker), worker)} ${mark}${rest.padEnd(HOLDER_COLUMNS - worker.length - 2)}`;
}

/** A mark for each item, the most urgent first: the order in which they will be worked on. */
function waiting(view: View, car: string): string {
  const running = view.keys.find(({ key }) => key === car)?.running;
  const gone = new Set(view.history.flatMap((record) => (record.type === "end" && record.done ? [record.item] : [])));
  const items = view.history
    .filter((record) => record.type === "submit")
    .filter((record) => record.car === car && !gone.has(record.item) && record.item !== running?.id)
    .toSorted((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  const room = WAITING_COLUMNS - 2;
  const shown = items.length <= room ? items : items.slice(0, room - 3);
  const more = items.length === shown.length ? "" : `+${items.length - shown.length}`;
  const marks = shown.map(({ level }) => styleText(LEVEL_STYLES[level], MARKS[level])).join("");
  return marks + more + " ".repeat(WAITING_COLUMNS - shown.length - more.length);
}

function pastOf(view: View, car: string): string {
  return strip(view, car, STRIP_COLUMNS)
    .map((worker) => {
      if (worker === undefined) return styleText("dim", "·");
      if (worker === "dead") return styleText("red", "✗");
      return styleText(workerStyle(worker), worker.slice(-1));
    })
    .join("");
}

function workersLine(view: View): string {
  const states = WORKERS.map((worker) => {
    if (isKilled(view, worker)) return styleText("red", `${worker} ✗ killed`.padEnd(19));
    const car = view.keys.find(({ running }) => running?.worker === worker)?.key;
    return styleText(car === undefined ? "dim" : workerStyle(worker), `${worker} ${car ?? "idle"}`.padEnd(19));
  });
  return ` ${states.join("")}`.trimEnd();
}

/** The death and its consequence stay; what was merely urgent makes room for newer. */
function newsLines({ history, begunAt }: View): readonly string[] {
  const news = newsOf(history);
  const great = news.filter(({ kind }) => kind === "kill" || kind === "takeover").slice(-NEWS_LINES);
  const urgent = news.filter(({ kind }) => kind === "urgent").slice(great.length - NEWS_LINES);
  const lines = [...urgent, ...great]
    .toSorted((a, b) => a.at - b.at)
    .map(({ kind, at, text }) => {
      const line = ` ${((at - begunAt) / 1_000).toFixed(1).padStart(4)} s  ${text}`;
      return kind === "urgent" ? line : styleText(kind === "kill" ? ["bold", "red"] : ["bold", "green"], line);
    });
  return [...lines, ...Array.from({ length: NEWS_LINES - lines.length }, () => "")];
}

function totals({ history, keys }: View): string {
  const submitted = history.filter(({ type }) => type === "submit").length;
  const done = history.filter((record) => record.type === "end" && record.done).length;
  const running = keys.filter((key) => key.running !== undefined).length;
  return ` submitted ${submitted}   done ${done}   in work ${running}   waiting ${submitted - done - running}`;
}

function legend(): string {
  const marks = LEVELS.map((level) => `${styleText(LEVEL_STYLES[level], MARKS[level])} ${level}`).join("   ");
  return ` ${marks}   ${styleText("red", "✗")} held by a dead worker until its lease runs out`;
}

function levelOf({ history }: View, item: string | undefined): Level | undefined {
  const record = history.find((one) => one.type === "submit" && one.item === item);
  return record?.type === "submit" ? record.level : undefined;
}

function isKilled({ history }: View, worker: string): boolean {
  return history.some((record) => record.type === "kill" && record.worker === worker);
}

function workerStyle(worker: string): Style {
  return WORKER_STYLES[WORKERS.findIndex((name) => name === worker)] ?? "white";
}
