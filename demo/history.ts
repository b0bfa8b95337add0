import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const LEVELS = ["high", "normal", "low"] as const;
export type Level = (typeof LEVELS)[number];

/** An item was accepted: the store said so at `at`, and was asked at `from`. */
export interface Submitted {
  readonly type: "submit";
  readonly from: number;
  readonly at: number;
  readonly item: string;
  readonly car: string;
  readonly level: Level;
}

/** A worker's handler began. */
export interface Started {
  readonly type: "start";
  readonly at: number;
  readonly worker: string;
  readonly item: string;
  readonly car: string;
  readonly level: Level;
  readonly fence: number;
  readonly attempt: number;
}

/** It ended by itself: with the work done, or because its lease was lost and its signal fired. */
export interface Ended {
  readonly type: "end";
  readonly at: number;
  readonly worker: string;
  readonly item: string;
  readonly done: boolean;
}

/** A worker process was killed; at `at` it was certainly gone. */
export interface Killed {
  readonly type: "kill";
  readonly at: number;
  readonly worker: string;
}

export type HistoryRecord = Submitted | Started | Ended | Killed;

/** Milliseconds by a clock that all processes of this machine share and nobody can set. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Each process has a file of its own, and writes at once: what a killed process did stays known. */
export function recorder(folder: string, name: string): (record: HistoryRecord) => void {
  const file = join(folder, `${name}.history`);
  return (record) => appendFileSync(file, `${JSON.stringify(record)}\n`);
}

/** What all processes recorded, in order of time. */
export function readHistory(folder: string): readonly HistoryRecord[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".history"))
    .flatMap((name) => wholeLines(readFileSync(join(folder, name), "utf8")))
    .map((line) => JSON.parse(line) as HistoryRecord)
    .toSorted((a, b) => a.at - b.at);
}

/** A process that is writing this very moment leaves half a line. */
function wholeLines(text: string): readonly string[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "");
}
