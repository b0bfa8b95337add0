/** What the application gets to see of a lease. */
import type { Grant, Item, Lease } from "../../engine/port.ts";
import { textOf } from "./key-token.ts";
import type { Held } from "./own-leases.ts";
import { itemId } from "./receipts.ts";
import type { KeyItem } from "./state.ts";

export interface Names {
  readonly queue: string;
  readonly levelName: (level: number) => string;
}

export function leaseOf(held: Held, queue: string, key: string = textOf(held.key)): Lease {
  return { queue, key, fence: held.fence, since: held.since, handle: held };
}

export function grantOf(held: Held, names: Names): Grant {
  const { item, behind } = held;
  if (item === undefined) throw new Error("A lease of work has no item.");
  const key = textOf(held.key);
  const given = (one: KeyItem, attempt: number): Item => itemOf(one, attempt, held.key, key, names);
  const { items, more } = held.seen.state;
  return {
    lease: leaseOf(held, names.queue, key),
    item: given(item, item.attempts),
    ...(behind.length === 0 ? {} : { behind: behind.map((one) => given(one, one.attempts + 1)) }),
    ...(more !== false || items.length > 1 + behind.length ? { more: true as const } : {}),
  };
}

function itemOf(item: KeyItem, attempt: number, token: string, key: string, { queue, levelName }: Names): Item {
  const { level, payload, headers, submittedAt, losses } = item;
  return {
    id: itemId(item, token),
    queue,
    key,
    level: levelName(level),
    // What the handler does with its bytes is its own affair.
    payload: { type: payload.type, body: typeof payload.body === "string" ? payload.body : payload.body.slice() },
    headers,
    submittedAt,
    attempt,
    ...(losses === 0 ? {} : { losses }),
  };
}
