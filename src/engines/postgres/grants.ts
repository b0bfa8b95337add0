import type { Grant, Item, Lease } from "../../engine/port.ts";
import { readHeaders } from "../../engine/stored-json.ts";
import { payloadOf } from "./bodies.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer, optionalInteger, optionalText, text } from "./rows.ts";

/** The kinds of rows of a step that hand out keys, and that tell what their leases cover. */
const GRANT = 0;
const COVERED = 5;

/** Of the rows that a step answers with, those that hand out keys, in the order in which they were handed out. */
export function readGrants(queue: DeclaredQueue, rows: readonly Row[], since: Lease["since"]): readonly Grant[] {
  const given = rows.filter((row) => integer(row, 0) === GRANT).toSorted((a, b) => integer(a, 1) - integer(b, 1));
  const runs = new Map<number, Item[]>();
  for (const row of rows) {
    if (integer(row, 0) !== COVERED) continue;
    const run = runs.get(integer(row, 3));
    if (run === undefined) runs.set(integer(row, 3), [itemOf(queue, row)]);
    else run.push(itemOf(queue, row));
  }
  return given.map((row) => {
    const handle = integer(row, 3);
    const lease = { queue: queue.name, key: text(row, 2), fence: integer(row, 4), since, handle };
    const behind = runs.get(handle);
    return { lease, item: itemOf(queue, row), ...(behind === undefined ? {} : { behind }) };
  });
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

/** The id of an item that was given none, as `given_id` of the store makes it. */
export function givenId(key: number, level: number, ord: number): string {
  return `@${key.toString(16)}-${level}-${ord.toString(16)}`;
}
