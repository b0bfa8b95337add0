import { styleText } from "node:util";
import { type HistoryRecord, LEVELS } from "./history.ts";
import { takeoversOf } from "./news.ts";
import type { Rule } from "./verify.ts";

/** What happened in figures, and the verdict on it. */
export function summary(history: readonly HistoryRecord[], rules: readonly Rule[]): readonly string[] {
  const submitted = history.filter((record) => record.type === "submit");
  const starts = history.filter((record) => record.type === "start");
  const done = new Set(history.flatMap((record) => (record.type === "end" && record.done ? [record.item] : [])));
  const perLevel = LEVELS.map((level) => {
    const items = submitted.filter((record) => record.level === level);
    const waits = items.map(({ item, at }) => (starts.find((start) => start.item === item)?.at ?? at) - at);
    const longest = (Math.max(0, ...waits) / 1_000).toFixed(1);
    const ended = items.filter(({ item }) => done.has(item)).length;
    return ` ${level.padEnd(8)}${row(items.length, ended)}${`${longest} s`.padStart(15)}`;
  });
  const takeovers = takeoversOf(history).map(({ killed, after }) => {
    const seconds = ((after.at - killed.at) / 1_000).toFixed(1);
    return `${after.car} from ${killed.worker} (killed) by ${after.worker} after ${seconds} s`;
  });
  return [
    styleText("dim", "         submitted    done   longest wait"),
    ...perLevel,
    ` all     ${row(submitted.length, done.size)}`,
    "",
    ` taken over: ${takeovers.length}${takeovers.length === 0 ? "" : ` (${takeovers.join("; ")})`}`,
    "",
    ` Verified from ${history.length} records that the processes wrote:`,
    ...rules.flatMap(verdict),
  ];
}

function verdict({ promise, violations }: Rule): readonly string[] {
  if (violations.length === 0) return [` ${styleText("green", "✓")} ${promise}`];
  return [` ${styleText("red", "✗")} NOT TRUE: ${promise}`, ...violations.map((violation) => `     ${violation}`)];
}

function row(submitted: number, done: number): string {
  return `${String(submitted).padStart(9)}${String(done).padStart(8)}`;
}
