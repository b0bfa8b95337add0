import type { Grant, Lease } from "../../engine/port.ts";
import { readHeaders } from "../../engine/stored-json.ts";
import { payloadOf } from "./bodies.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer, optionalText, text } from "./rows.ts";

/** The kind of a row of a step that is a grant. */
const GRANT = 0;

/** Of the rows that a step answers with, those that hand out keys, in the order in which they were handed out. */
export function readGrants(queue: DeclaredQueue, rows: readonly Row[], since: Lease["since"]): readonly Grant[] {
  const given = rows.filter((row) => integer(row, 0) === GRANT).toSorted((a, b) => integer(a, 1) - integer(b, 1));
  return given.map((row) => {
    const key = text(row, 2);
    const keyId = integer(row, 3);
    const rank = integer(row, 5);
    const headers = optionalText(row, 9);
    return {
      lease: { queue: queue.name, key, fence: integer(row, 4), since, handle: keyId },
      item: {
        id: optionalText(row, 7) ?? givenId(keyId, rank, integer(row, 6)),
        queue: queue.name,
        key,
        level: queue.levels[rank] ?? "",
        payload: payloadOf(row[8], row[10], row[11]),
        headers: headers === undefined ? undefined : readHeaders(headers),
        submittedAt: integer(row, 12),
        attempt: integer(row, 13),
      },
    };
  });
}

/** The id of an item that was given none, as `given_id` of the store makes it. */
export function givenId(key: number, level: number, ord: number): string {
  return `@${key.toString(16)}-${level}-${ord.toString(16)}`;
}
