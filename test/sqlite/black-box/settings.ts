export const QUEUE = "cars";
/** Short, so that many run out within the time of a test; long enough for an ordinary pause on a busy machine. */
export const LEASE_MS = 1_000;
/** Faults cost attempts, and here they come thick: nothing may be given up for that. */
export const RETRY = { attempts: 1_000_000, backoff: 0 };
export const LEVELS = ["high", "normal", "low"] as const;
