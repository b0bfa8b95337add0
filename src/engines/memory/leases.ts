import type { Instant } from "../../domain/clock.ts";
import type { Failure } from "../../domain/failure.ts";
import type {
  ClaimRequest,
  Ending,
  HoldRequest,
  Lease,
  Renewal,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../engine/port.ts";
import { copyPayload } from "./item.ts";
import { beginLease, bury, delay, elect, end, endLease, remove, takePlace } from "./moves.ts";
import { keyOf } from "./queue.ts";
import type { StoredItem, StoredLease, StoredQueue } from "./state.ts";

export function hold(queue: StoredQueue, request: HoldRequest, now: Instant): Lease | undefined {
  const key = keyOf(queue, request.key);
  if (key.lease !== undefined) return undefined;
  const made = beginLease(key, undefined, request.worker, request.leaseMs, now);
  return held(made, request, now);
}

/** The lease as its holder gets it. */
export function held(made: StoredLease, { lost }: ClaimRequest | HoldRequest, now: Instant): Lease {
  const { key, fence } = made;
  const lease: Lease = { queue: key.queue.name, key: key.name, fence, since: now, handle: undefined };
  if (lost !== undefined) made.holder = { lease, lost };
  return lease;
}

export function renew(queue: StoredQueue, renewal: Renewal, now: Instant): RenewResult {
  const current = currentLease(queue, renewal.lease);
  if (current === undefined) return { ok: false };
  const { leases } = queue.agenda;
  leases.remove(current);
  current.deadline = now.monotonic + renewal.leaseMs;
  current.deadlineWall = now.wall + renewal.leaseMs;
  leases.add(current);
  if (renewal.progress !== undefined) current.progress = renewal.progress;
  return { ok: true, since: now, cancelRequested: current.item?.cancelRequested ?? false };
}

export function settle(queue: StoredQueue, { lease, ending }: Settlement, now: Instant): SettleResult {
  const current = currentLease(queue, lease);
  if (current === undefined) return "lost";
  endLease(current);
  if (current.item !== undefined) conclude(current.item, ending, now);
  elect(current.key, now);
  return "settled";
}

/** Leases that ran out were ended before, so the fence alone decides. */
function currentLease(queue: StoredQueue, lease: Lease): StoredLease | undefined {
  const current = queue.keys.get(lease.key)?.lease;
  return current?.fence === lease.fence ? current : undefined;
}

/** What becomes of an item whose lease was just ended; it is the head of its key. */
function conclude(item: StoredItem, ending: Ending, now: Instant): void {
  const wanted: Ending =
    item.cancelRequested && (ending.type === "retry" || ending.type === "release") ? { type: "cancelled" } : ending;
  const over = { at: now.wall, attempt: item.attempts };
  switch (wanted.type) {
    case "done":
      remove(item);
      end(
        item,
        { state: "done", ...over, ...(wanted.result === undefined ? {} : { result: copyPayload(wanted.result) }) },
        now,
      );
      break;
    case "cancelled":
      remove(item);
      end(item, { state: "cancelled", ...over }, now);
      break;
    case "dead":
      remove(item);
      bury(item, { state: "dead", ...over, failure: copyFailure(wanted.failure) });
      break;
    case "release":
      item.attempts -= 1;
      break;
    case "retry":
      // Without a back-off there is nothing to let others pass in.
      if (wanted.place === "yield" && wanted.delayMs > 0) {
        remove(item);
        item.yielded = true;
        delay(item, now.wall + wanted.delayMs);
      } else {
        // Without a back-off there is also nothing to wait for, whatever the wall clock does meanwhile.
        if (wanted.delayMs > 0) item.dueAt = now.wall + wanted.delayMs;
        takePlace(item.key);
      }
      break;
  }
}

function copyFailure({ message, code, stack }: Failure): Failure {
  return { message, ...(code === undefined ? {} : { code }), ...(stack === undefined ? {} : { stack }) };
}
