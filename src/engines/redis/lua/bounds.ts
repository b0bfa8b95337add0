/**
 * Times, in microseconds, and bounds of the program. They are written into its text: a variable costs every function that shares it.
 */

/** So long a key is kept for whoever waits to hold it: they hear of it in milliseconds, if they are still there. */
export const KEPT_US = 250_000;
/** So long it is taken for granted that a claim which found nothing, or whoever asked how an item ends, still waits. */
export const WAITS_US = 15_000_000;
/** An item whose key is damaged tries so often to arrive. */
export const REPAIR_US = 60_000_000;
/** How many dates of a kind come due in one call; the rest in the next, so that others get their turn. */
export const DUE_AT_A_TIME = 200;
/** The arguments of one command: the stack takes a few thousand. */
export const MOST_ARGUMENTS = 2_000;
/** What stands behind others in one reply: so many bytes, of which each item takes some for the time that it costs. */
export const RUN_BYTES = 1_000_000;
export const ITEM_BYTES = 2_000;
