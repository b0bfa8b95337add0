/** How far a worker may be ahead of what the store knows of a key, and what others have to allow for it. */
import type { ClaimRequest } from "../../engine/port.ts";

/** Whoever asks for runs gets those, and nothing ahead of them. */
export function asksForRuns({ items = 1 }: ClaimRequest): boolean {
  return items > 1;
}

/** So many items behind the one that is handed out. */
export const MOST_CARRIED = 12;
/** For so long one of them may be begun, counted from before the key was asked for: a quarter of a lease, and no more than this. */
export const RUN_AHEAD_MS = 50;
export const SHARE_OF_LEASE = 4;
/**
 * Whoever takes something away from a key waits for so long, counted from when it was handed out, or until the store knows what was begun: the time for
 * which something may be, the time to write that it was, and a lot to spare.
 */
export const SETTLED_MS = 300;
/** And looks this often whether it is known. */
export const LOOK_AGAIN_MS = 10;
