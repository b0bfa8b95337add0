import type { Grant, Item, Lease } from "../../engine/port.ts";
import { readHeaders } from "../../engine/stored-json.ts";
import { payloadOf } from "./bodies.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer, optionalInteger, optionalText, text } from "./rows.ts";

/** The kinds of rows of a step. */
const GRANT = 0;
const LOST = 1;
const WORK = 2;
const OUTCOMES = 3;
const LEARNT = 4;
const COVERED = 5;

interface QueueNews {
  readonly queue: number;
  /** Others were told. */
  readonly rung: boolean;
}

export interface StepAnswer {
  /** Positions of settlements, counted from 1. */
  readonly lost: ReadonlySet<number>;
  readonly work: readonly QueueNews[];
  readonly outcomes: readonly QueueNews[];
  /** What the next claim should know. */
  readonly learnt: readonly Row[];
}

export function readAnswer(rows: readonly Row[]): StepAnswer {
  const lost = rowsOf(rows, LOST).map((row) => integer(row, 1));
  const news = (kind: number): readonly QueueNews[] =>
    rowsOf(rows, kind).map((row) => ({ queue: integer(row, 1), rung: integer(row, 3) === 1 }));
  return { lost: new Set(lost), work: news(WORK), outcomes: news(OUTCOMES), learnt: rowsOf(rows, LEARNT) };
}

/** The keys that were handed out, in the order in which they were. */
export function readGrants(queue: DeclaredQueue, rows: readonly Row[], since: Lease["since"]): readonly Grant[] {
  const runs = new Map<number, Item[]>();
  for (const row of rowsOf(rows, COVERED)) {
    const run = runs.get(integer(row, 3));
    if (run === undefined) runs.set(integer(row, 3), [itemOf(queue, row)]);
    else run.push(itemOf(queue, row));
  }
  const given = rowsOf(rows, GRANT).toSorted((a, b) => integer(a, 1) - integer(b, 1));
  return given.map((row) => {
    const handle = integer(row, 3);
    const lease = { queue: queue.name, key: text(row, 2), fence: integer(row, 4), since, handle };
    const item = itemOf(queue, row);
    const behind = runs.get(handle);
    return behind === undefined ? { lease, item } : { lease, item, behind };
  });
}

/** The id of an item that was given none, as `given_id` of the store makes it. */
export function givenId(key: number, level: number, ord: number): string {
  return `@${key.toString(16)}-${level}-${ord.toString(16)}`;
}

function rowsOf(rows: readonly Row[], kind: number): readonly Row[] {
  return rows.filter((row) => integer(row, 0) === kind);
}

function itemOf(queue: DeclaredQueue, row: Row): Item {
  const rank = integer(row, 5);
  const losses = optionalInteger(row, 14);
  return {
    id: optionalText(row, 7) ?? givenId(integer(row, 3), rank, integer(row, 6)),
    queue: queue.name,
    key: text(row, 2),
    level: queue.levels[rank] ?? "",
    payload: payloadOf(row[8], row[10], row[11]),
    ...readHeaders(optionalText(row, 9)),
    submittedAt: integer(row, 12),
    attempt: integer(row, 13),
    ...(losses === undefined ? {} : { losses }),
  };
}
