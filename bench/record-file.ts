import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BadArgument } from "./arguments.ts";
import { RECORD_FORMAT, type RunRecord } from "./record.ts";
import { reasonOf } from "./report/reason.ts";

/** Where a run keeps its results unless it is told otherwise. Not part of the repository. */
export function defaultRecordFile(at: Date): string {
  const name = at.toISOString().slice(0, 19).replaceAll(":", "-");
  return join(import.meta.dirname, "results", `${name}.json`);
}

/** Whole or not at all: it is written after every step, and may be cut off in the middle. */
export function writeRecord(file: string, record: RunRecord): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(record, undefined, 1)}\n`);
  renameSync(`${file}.new`, file);
}

export function readRecord(file: string): RunRecord {
  let record: RunRecord;
  try {
    record = JSON.parse(readFileSync(file, "utf8")) as RunRecord;
  } catch (error) {
    throw new BadArgument(`${file} cannot be read: ${reasonOf(error)}.`);
  }
  if (record.format !== RECORD_FORMAT) throw new BadArgument(`${file} is not a file of results of this benchmark.`);
  if (record.samples.length === 0) throw new BadArgument(`${file} holds no measurement.`);
  return record;
}
