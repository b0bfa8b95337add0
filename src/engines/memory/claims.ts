import type { Instant } from "../../domain/clock.ts";
import type { LevelChooser } from "../../domain/level.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { grant } from "./grants.ts";
import { hold } from "./leases.ts";
import { hasReady, waitedMs } from "./queue.ts";
import type { StoredQueue } from "./state.ts";

/** Leases up to `max` ready keys, each with its head and what its run takes along. */
export function take(queue: StoredQueue, request: ClaimRequest, chooser: LevelChooser, now: Instant): Grant[] {
  const grants: Grant[] = [];
  while (!queue.paused && grants.length < request.max) {
    const level = chooser.choose(waitedMs(queue, now.wall), request.patienceMs);
    const key = level === undefined ? undefined : queue.ready[level]?.first();
    const item = key?.head;
    if (key === undefined || item === undefined) break;
    grants.push(grant(key, item, request, now, now.monotonic));
  }
  return grants;
}

/** Gives those in line what has become free, first come first served; holds first, because a busy key has a next item again and again. */
export function serve(queue: StoredQueue, now: Instant): void {
  serveHolds(queue, now);
  for (;;) {
    const claim = queue.claims.first;
    if (claim === undefined || !hasReady(queue)) return;
    claim.answer(take(queue, claim.request, claim.chooser, now));
  }
}

export function serveHolds(queue: StoredQueue, now: Instant): void {
  for (const waiting of queue.holds) {
    const lease = hold(queue, waiting.request, now);
    if (lease !== undefined) waiting.answer(lease);
  }
}
