import type { Instant } from "../../domain/clock.ts";
import type {
  EndedItem,
  Ending,
  HoldRequest,
  Lease,
  Renewal,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../engine/port.ts";
import { addAttempt, attemptOf, endsItem, isVain } from "../../engine/attempts.ts";
import { goOn, held } from "./grants.ts";
import { copyPayload } from "./item.ts";
import {
  advance,
  beginLease,
  bury,
  cancelWaiting,
  delay,
  elect,
  end,
  endLease,
  remove,
  takePlace,
  uncover,
} from "./moves.ts";
import { keyOf } from "./queue.ts";
import type { StoredItem, StoredLease, StoredQueue } from "./state.ts";

type FindQueue = (name: string) => StoredQueue | undefined;

export function hold(queue: StoredQueue, request: HoldRequest, now: Instant): Lease | undefined {
  const key = keyOf(queue, request.key);
  if (key.lease !== undefined) return undefined;
  const { worker, leaseMs } = request;
  const made = beginLease(key, { item: undefined, behind: [], worker, leaseMs, turnSince: now.monotonic }, now);
  return held(made, request, now);
}

export function renew(queue: StoredQueue, renewal: Renewal, now: Instant): RenewResult {
  const current = currentLease(queue, renewal.lease);
  if (current === undefined) return { ok: false };
  const { leases } = queue.agenda;
  leases.remove(current);
  current.deadline = now.monotonic + renewal.leaseMs;
  current.deadlineWall = now.wall + renewal.leaseMs;
  leases.add(current);
  if (renewal.ended !== undefined) {
    endBefore(current, renewal.ended, now);
    uncover(current, now);
  }
  if (renewal.progress !== undefined) current.progress = renewal.progress;
  return { ok: true, since: now, cancelRequested: current.item?.cancelRequested ?? false };
}

/** All of them end before one goes on: what they make ready may be more urgent. */
export function settleAll(find: FindQueue, settlements: readonly Settlement[], now: Instant): SettleResult[] {
  const ended = settlements.map((settlement) => {
    const queue = find(settlement.lease.queue);
    return queue === undefined ? undefined : settle(queue, settlement, now);
  });
  return settlements.map(({ ending, next }, index): SettleResult => {
    const lease = ended[index];
    if (lease === undefined) return "lost";
    return (next !== undefined && endsItem(ending) ? goOn(lease, next, now) : undefined) ?? "settled";
  });
}

/** The lease that has ended. Undefined: it was lost. */
function settle(queue: StoredQueue, { lease, ended, ending }: Settlement, now: Instant): StoredLease | undefined {
  const current = currentLease(queue, lease);
  if (current === undefined) return undefined;
  const isNew = endBefore(current, ended ?? [], now);
  const { item, key } = current;
  endLease(current, now);
  // An item that was counted by this very report, and was not begun, goes back as if nothing had been.
  if (item !== undefined && isNew && ending.type === "release") giveBack(item, now);
  else if (item !== undefined) conclude(item, ending, current.worker, now);
  if (item !== undefined && ending.type !== "release") key.alone = Math.max(0, key.alone - 1);
  elect(key, now);
  return current;
}

function giveBack(item: StoredItem, now: Instant): void {
  item.attempts -= 1;
  if (item.cancelRequested) cancelWaiting(item, now);
}

/** Ends what the run left behind. True: there was something, so that the attempt of the item that runs was counted just now. */
function endBefore(current: StoredLease, ended: readonly EndedItem[], now: Instant): boolean {
  let isNew = false;
  for (const { id, ending } of ended) {
    const { item } = current;
    // Reported before: only the holder ends what its lease covers.
    if (item === undefined || item.id !== id || current.behind.length === 0) continue;
    conclude(item, ending, current.worker, now);
    advance(current);
    isNew = true;
  }
  return isNew;
}

/** Leases that ran out were ended before, so the fence alone decides. */
function currentLease(queue: StoredQueue, lease: Lease): StoredLease | undefined {
  const current = queue.keys.get(lease.key)?.lease;
  return current?.fence === lease.fence ? current : undefined;
}

/** What becomes of an item that ran; it is the head of its key. */
function conclude(item: StoredItem, ending: Ending, worker: string, now: Instant): void {
  const wanted: Ending =
    item.cancelRequested && (ending.type === "retry" || ending.type === "release") ? { type: "cancelled" } : ending;
  const over = { at: now.wall, attempt: item.attempts };
  if (isVain(wanted)) item.tried = addAttempt(item.tried, attemptOf(wanted, { ...over, worker }));
  switch (wanted.type) {
    case "done":
      remove(item);
      end(
        item,
        {
          state: "done",
          ...over,
          ...(wanted.result === undefined ? {} : { result: copyPayload(wanted.result) }),
          ...(wanted.resultMissing === undefined ? {} : { resultMissing: wanted.resultMissing }),
        },
        now,
      );
      break;
    case "cancelled":
      remove(item);
      end(item, { state: "cancelled", ...over }, now);
      break;
    case "dead":
      remove(item);
      bury(item, { state: "dead", ...over, failure: structuredClone(wanted.failure) });
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
