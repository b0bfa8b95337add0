/** What the application gets to see of a lease. */
import type { Grant, Lease } from "../../engine/port.ts";
import { textOf } from "./key-token.ts";
import type { Held } from "./own-leases.ts";
import { itemId } from "./receipts.ts";

export interface Names {
  readonly queue: string;
  readonly levelName: (level: number) => string;
}

export function leaseOf(held: Held, queue: string, key: string = textOf(held.key)): Lease {
  return { queue, key, fence: held.fence, since: held.since, handle: held };
}

export function grantOf(held: Held, { queue, levelName }: Names): Grant {
  const { item } = held;
  if (item === undefined) throw new Error("A lease of work has no item.");
  const key = textOf(held.key);
  return {
    lease: leaseOf(held, queue, key),
    item: {
      id: itemId(item, held.key),
      queue,
      key,
      level: levelName(item.level),
      // What the handler does with its bytes is its own affair.
      payload: {
        type: item.payload.type,
        body: typeof item.payload.body === "string" ? item.payload.body : item.payload.body.slice(),
      },
      headers: item.headers,
      submittedAt: item.submittedAt,
      attempt: item.attempts,
    },
  };
}
