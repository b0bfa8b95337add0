/** How far a worker may be ahead of what is written of its key, and what others have to allow for it. */

/** So many items may be done before it is written that they are. Fewer than a message has fences. */
export const MOST_AHEAD = 44;
/** So many are worth a message; fewer wait for others, but not long. */
export const WORTH_WRITING = 32;
export const LATEST_MS = 36;
/**
 * How long what was last written of the key may be relied on, counted from before it was sent. Whoever takes something away
 * from a key in work waits longer than this and looks again; what is more urgent may come so much too late.
 */
export const RUN_AHEAD_MS = 50;
/** Until what a worker started ahead is written: the time for which it may, the time to write it, and some to spare. */
export const SETTLED_MS: number = RUN_AHEAD_MS + LATEST_MS + 40;
