import type { HistoryRecord } from "./history.ts";

/** A column of the strip stands for this long: forty of them are the whole demo. */
const COLUMN_MS = 250;

interface Moments {
  readonly history: readonly HistoryRecord[];
  readonly begunAt: number;
  readonly at: number;
}

/** Who worked on a car, column by column: a worker, nobody, or one that is dead and whose lease has not run out. */
export function strip(
  { history, begunAt, at }: Moments,
  car: string,
  columns: number,
): readonly (string | undefined)[] {
  const past = Math.floor((at - begunAt) / COLUMN_MS);
  const first = Math.max(0, past - columns);
  return Array.from({ length: columns }, (_, index) => {
    const moment = begunAt + (first + index + 0.5) * COLUMN_MS;
    return moment > at ? undefined : workerAt(history, car, moment);
  });
}

function workerAt(history: readonly HistoryRecord[], car: string, moment: number): string | undefined {
  const start = history
    .filter((record) => record.type === "start")
    .findLast((record) => record.car === car && record.at <= moment);
  if (start === undefined) return undefined;
  const { worker, item } = start;
  const over = history.find(
    (record) =>
      record.at >= start.at &&
      ((record.type === "end" && record.worker === worker && record.item === item) ||
        (record.type === "kill" && record.worker === worker)),
  );
  if (over === undefined || over.at > moment) return worker;
  return over.type === "kill" ? "dead" : undefined;
}
