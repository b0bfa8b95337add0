import type { Instant } from "../../domain/clock.ts";
import { type Grant, type Lease, type LostListener, MOST_TURN_MS } from "../../engine/port.ts";
import { grantedItem } from "./item.ts";
import { beginLease, runBehind } from "./moves.ts";
import type { StoredItem, StoredKey, StoredLease } from "./state.ts";

/** What a claim, or a settlement that asks for the next run, says of its worker. */
interface Taker {
  readonly worker: string;
  readonly leaseMs: number;
  readonly items?: number;
  readonly lost?: LostListener;
}

/**
 * Grants the head of a ready key, and what its run takes along.
 * @param turnSince monotonic: when the worker got the key from a claim
 */
export function grant(key: StoredKey, item: StoredItem, taker: Taker, now: Instant, turnSince: number): Grant {
  const { worker, leaseMs, items = 1 } = taker;
  const behind = runBehind(key, items);
  const more = key.waiting > 1 + behind.length;
  const made = beginLease(key, { item, behind, worker, leaseMs, turnSince }, now);
  return {
    lease: held(made, taker, now),
    item: grantedItem(item),
    ...(behind.length === 0 ? {} : { behind: behind.map((one) => grantedItem(one, 1)) }),
    ...(more ? { more } : {}),
  };
}

/** The key, whose lease was just settled, goes on with its next run, unless that would keep others from their turn. */
export function goOn({ key, turnSince }: StoredLease, taker: Taker, now: Instant): Grant | undefined {
  const { head, queue } = key;
  const isReady = !queue.paused && key.slot !== -1;
  if (!isReady || head === undefined || now.monotonic - turnSince >= MOST_TURN_MS) return undefined;
  if (queue.ready.slice(0, head.level).some((keys) => keys.size > 0)) return undefined;
  for (const { request } of queue.holds) if (request.key === key.name) return undefined;
  return grant(key, head, taker, now, turnSince);
}

/** The lease as its holder gets it. */
export function held(made: StoredLease, { lost }: { readonly lost?: LostListener }, now: Instant): Lease {
  const { key, fence } = made;
  const lease: Lease = { queue: key.queue.name, key: key.name, fence, since: now, handle: undefined };
  if (lost !== undefined) made.holder = { lease, lost };
  return lease;
}
