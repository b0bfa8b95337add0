import type { Grant, Item, Lease } from "../../engine/port.ts";
import { readHeaders } from "../../engine/stored-json.ts";
import { payloadOf } from "./bodies.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer, optionalInteger, optionalText, text } from "./rows.ts";
import type { Car } from "./train.ts";

/** The kinds of rows of a step that hand out keys, that tell what may begin after the items of those, and what their leases cover. */
const GRANT = 0;
const CARRIED = 5;
const COVERED = 8;

export interface Given {
  readonly grant: Grant;
  /** The item and those that may begin after it, if there are any. */
  readonly cars: readonly Car[] | undefined;
}

/** Of the rows that a step answers with, those that hand out keys, in the order in which they were handed out. */
export function readGrants(queue: DeclaredQueue, rows: readonly Row[], since: Lease["since"]): readonly Given[] {
  const given = rows.filter((row) => integer(row, 0) === GRANT).toSorted((a, b) => integer(a, 1) - integer(b, 1));
  const carried = byKey(rows, CARRIED);
  const covered = byKey(rows, COVERED);
  return given.map((row) => {
    const key = text(row, 2);
    const grant = grantOf(queue, key, row, since);
    const run = covered.get(integer(row, 3))?.map((one) => itemOf(queue, key, one));
    if (run !== undefined) return { grant: { ...grant, behind: run }, cars: undefined };
    const behind = plainOf(carried.get(integer(row, 3)));
    if (behind.length === 0) return { grant, cars: undefined };
    const first = { grant, ord: integer(row, 6), spot: text(row, 14) };
    const others = behind.map((car) => ({
      grant: grantOf(queue, key, car, since),
      ord: integer(car, 6),
      spot: text(car, 14),
    }));
    return { grant, cars: [first, ...others] };
  });
}

function byKey(rows: readonly Row[], kind: number): ReadonlyMap<number, readonly Row[]> {
  const found = new Map<number, Row[]>();
  for (const row of rows) {
    if (integer(row, 0) !== kind) continue;
    const before = found.get(integer(row, 3));
    if (before === undefined) found.set(integer(row, 3), [row]);
    else before.push(row);
  }
  return found;
}

/** Up to the first whose end somebody may ask for, or that was tried before: if it brings its process down, that must be seen. */
function plainOf(rows: readonly Row[] | undefined): readonly Row[] {
  if (rows === undefined) return [];
  const end = rows.findIndex((row) => row[7] !== null || integer(row, 13) > 1);
  return end === -1 ? rows : rows.slice(0, end);
}

function grantOf(queue: DeclaredQueue, key: string, row: Row, since: Lease["since"]): Grant {
  const lease = { queue: queue.name, key, fence: integer(row, 4), since, handle: integer(row, 3) };
  return { lease, item: itemOf(queue, key, row) };
}

function itemOf(queue: DeclaredQueue, key: string, row: Row): Item {
  const rank = integer(row, 5);
  const losses = optionalInteger(row, 15);
  return {
    id: optionalText(row, 7) ?? givenId(integer(row, 3), rank, integer(row, 6)),
    queue: queue.name,
    key,
    level: queue.levels[rank] ?? "",
    payload: payloadOf(row[8], row[10], row[11]),
    ...readHeaders(optionalText(row, 9)),
    submittedAt: integer(row, 12),
    attempt: integer(row, 13),
    ...(losses === undefined ? {} : { losses }),
  };
}

/** The id of an item that was given none, as `given_id` of the store makes it. */
export function givenId(key: number, level: number, ord: number): string {
  return `@${key.toString(16)}-${level}-${ord.toString(16)}`;
}
