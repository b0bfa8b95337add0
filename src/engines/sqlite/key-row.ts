import type { EndedItem } from "./items.ts";
import { integer, optionalInteger, optionalText, type Row, text } from "./rows.ts";

/**
 * The states of a key and their moves:
 *
 *   idle ──item arrives──▶ ready ──claim──▶ leased ──settle, or the lease runs out──▶ ready, blocked or idle
 *                            │                ▲
 *                            └────hold────────┘          blocked ──its time comes──▶ ready
 *
 * An idle key has a row only while it is paused, has delayed items, or is kept for a hold.
 */
export const IDLE = 0;
export const READY = 1;
export const LEASED = 2;
export const BLOCKED = 3;

/** The items of one level that wait behind the head: a chain of links from `first` to `last`. */
export interface Lane {
  readonly level: number;
  first: number;
  last: number;
}

export interface KeyRow {
  readonly id: number;
  readonly queue: number;
  readonly name: string;
  state: number;
  paused: boolean;
  /** The item that is ready, blocked or running; 0 for none. */
  head: number;
  level: number;
  /** The order among ready keys of a level. */
  place: number;
  readyAt: number;
  /** How often the head was handed out since it became the head; earlier attempts are in the item's row. */
  attempt: number;
  /**
   * Leased: the deadline, by the monotonic clock. Blocked: when the head may run, by the wall clock. Ready or idle, and
   * wanted: until when it is kept for a hold, by the monotonic clock.
   */
  at: number;
  /** When the lease was given or renewed, by the monotonic clock. */
  granted: number;
  fence: number;
  held: boolean;
  /** Somebody waits to hold it: when its lease ends, workers leave it alone for a moment. */
  wanted: boolean;
  cancel: boolean;
  since: number;
  worker: string | undefined;
  progress: number | undefined;
  /** The head, unless it runs, and all lanes. */
  waiting: number;
  delayed: number;
  /** Most urgent first; none is empty. */
  lanes: Lane[];
  /** A lane may hold links to items that are gone, or not due yet: look before one becomes the head. */
  gaps: boolean;
  /** How many items its lease covers, from the head on; those behind the head are the first of the lane of its level. 1 without a lease. */
  covered: number;
  /** Items behind the head that are to be cancelled, if their holder does not end them. */
  marked: readonly number[];
  /** So many items must end one by one, because a lease that covered as many was lost. */
  alone: number;
  /** What the last grant read of the head, so that its end need not read it again. Not stored. */
  granting: EndedItem | undefined;
  /** The same of those behind the head that the lease covers. Not stored. */
  behind: EndedItem[] | undefined;
}

export const KEY_COLUMNS =
  "id, queue, name, state, paused, head, level, place, ready_at, attempt, at, granted, fence, held, cancel, since, worker, progress, waiting, delayed, lanes, gaps, wanted, covered, marked, alone";

export function newKey(id: number, queue: number, name: string): KeyRow {
  const row = [id, queue, name, IDLE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, 0, 0, null, 0, 0, 1, null, 0];
  return readKey(row);
}

export function readKey(row: Row): KeyRow {
  return {
    id: integer(row, 0),
    queue: integer(row, 1),
    name: text(row, 2),
    state: integer(row, 3),
    paused: integer(row, 4) === 1,
    head: integer(row, 5),
    level: integer(row, 6),
    place: integer(row, 7),
    readyAt: integer(row, 8),
    attempt: integer(row, 9),
    at: integer(row, 10),
    granted: integer(row, 11),
    fence: integer(row, 12),
    held: integer(row, 13) === 1,
    cancel: integer(row, 14) === 1,
    since: integer(row, 15),
    worker: optionalText(row, 16),
    progress: optionalInteger(row, 17),
    waiting: integer(row, 18),
    delayed: integer(row, 19),
    lanes: readLanes(optionalText(row, 20)),
    gaps: integer(row, 21) === 1,
    wanted: integer(row, 22) === 1,
    covered: integer(row, 23),
    marked: optionalText(row, 24)?.split(" ").map(Number) ?? [],
    alone: integer(row, 25),
    granting: undefined,
    behind: undefined,
  };
}

/** It ended, or stands elsewhere now. */
export function removeHead(key: KeyRow): void {
  key.head = 0;
  key.attempt = 0;
  key.granting = undefined;
}

/** `level:first:last` joined by spaces: small, and cheaper to read than JSON. */
export function writeLanes(lanes: readonly Lane[]): string | null {
  const [only] = lanes;
  if (only === undefined) return null;
  if (lanes.length === 1) return `${only.level}:${only.first}:${only.last}`;
  return lanes.map(({ level, first, last }) => `${level}:${first}:${last}`).join(" ");
}

function readLanes(written: string | undefined): Lane[] {
  if (written === undefined) return [];
  return written.split(" ").map((lane) => {
    const [level, first, last] = lane.split(":").map(Number);
    if (level === undefined || first === undefined || last === undefined)
      throw new TypeError(`The store has a bad lane: ${lane}.`);
    return { level, first, last };
  });
}
