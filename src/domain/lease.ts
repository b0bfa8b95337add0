import { type Clock, elapsedMs, type Instant } from "./clock.ts";

/** Shorter leases would be eaten up by the margin and by ordinary pauses of a process. */
export const SHORTEST_LEASE_MS = 100;
/** Longer leases keep a crashed worker's key blocked; long work renews instead. */
export const LONGEST_LEASE_MS = 86_400_000;

/** What is kept in hand for clocks, timers and the way to the store: the larger of the two. */
const MARGIN_SHARE = 0.1;
const MARGIN_MS = 500;
/** A short lease must keep most of its time for work. */
const LARGEST_MARGIN_SHARE = 0.25;

export function leaseMarginMs(leaseMs: number, roundTripMs = 0): number {
  const wanted = Math.max(leaseMs * MARGIN_SHARE, MARGIN_MS, 2 * roundTripMs);
  return Math.min(wanted, leaseMs * LARGEST_MARGIN_SHARE);
}

/** A renewal at a third leaves room for one that fails and one that is late. */
export function renewAfterMs(leaseMs: number): number {
  return leaseMs / 3;
}

/**
 * How long the holder may still trust its lease. Counted from before the lease was asked for, so that it
 * ends here before it ends in the store. Computed from the clock each time: a cached answer would be
 * wrong after a stall.
 */
export function leaseLeftMs(clock: Clock, since: Instant, leaseMs: number, marginMs: number): number {
  return leaseMs - marginMs - elapsedMs(clock, since);
}
