import type { KeyReport, QueueReport } from "../../index.ts";
import { printable } from "../printable.ts";
import { table } from "../table.ts";
import { ago, ahead } from "../times.ts";

export interface QueueStatus extends QueueReport {
  /** The keys in work that were found; `running` counts all. */
  readonly runs: readonly KeyReport[];
}

const HEAD = ["QUEUE", "WAITING", "BY LEVEL", "DELAYED", "RUNNING", "DEAD", "PAUSED"];

export function storeLines(reports: readonly QueueReport[]): readonly string[] {
  if (reports.length === 0) return ["No queues yet. The first baton submit makes one."];
  return [...table(HEAD, reports.map(row)), ...reports.flatMap(damageLines)];
}

export function queueLines(status: QueueStatus): readonly string[] {
  const lines = [...table(HEAD, [row(status)]), ...damageLines(status)];
  if (status.runs.length > 0) lines.push("", ...runLines(status.runs));
  const hidden = status.running - status.runs.length;
  if (hidden > 0 && status.runs.length > 0) lines.push(`… and ${hidden} more`);
  return lines;
}

function damageLines({ queue, damage }: QueueReport): readonly string[] {
  return damage === undefined ? [] : [`${queue}: ${printable(damage)}`];
}

/** For a log: one line that says it all. */
export function row({ queue, waiting, levels, delayed, running, dead, paused }: QueueReport): (string | number)[] {
  const byLevel = levels.map(({ level, waiting: count }) => `${level} ${count}`).join(", ");
  return [queue, waiting, byLevel, delayed, running, dead, paused ? "paused" : "-"];
}

export function runLines(keys: readonly KeyReport[]): readonly string[] {
  const rows = keys.flatMap(({ key, running }) => {
    if (running === undefined) return [];
    const { worker, since, attempt, progress, deadline, id } = running;
    return [
      [
        printable(key),
        id === undefined ? "(held)" : printable(id),
        printable(worker),
        ago(since),
        attempt === 0 ? "-" : String(attempt),
        progress === undefined ? "-" : `${Math.round(progress * 100)} %`,
        ahead(deadline),
      ],
    ];
  });
  return table(["KEY", "ITEM", "WORKER", "SINCE", "ATTEMPT", "PROGRESS", "LEASE ENDS"], rows);
}
