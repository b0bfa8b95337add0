import { leaseMarginMs } from "../../index.ts";
import type { Deadlines, Moment } from "./messages.ts";

/** Between the kill and the end of the lease in the store: for a busy machine that is late to run the guard. */
const LONGEST_SLACK_MS = 500;

export function now(): Moment {
  // hrtime counts from boot, so that the guard can compare what the worker read.
  return { monotonic: Number(process.hrtime.bigint()) / 1e6, wall: Date.now() };
}

export function later(moment: Moment, ms: number): Moment {
  return { monotonic: moment.monotonic + ms, wall: moment.wall + ms };
}

/** Zero or less: it has come. */
export function leftMs(moment: Moment): number {
  const { monotonic, wall } = now();
  return Math.min(moment.monotonic - monotonic, moment.wall - wall);
}

/** What a command needs to run: the lease on a key, or a lock. */
export interface Tenure {
  /** For how long it is certain. */
  readonly leftMs: number;
  /** Fires when the command is to end. */
  readonly signal: AbortSignal;
}

/**
 * A worker trusts its lease until a margin before the lease ends in the store. The command is asked to end at that
 * moment, and has most of the margin for it: nobody else can have the key until the margin is over, and a lock's delay after
 * loss with it.
 */
export function deadlinesOf(tenure: Tenure, leaseMs: number, delayAfterLossMs: number): Deadlines {
  const marginMs = leaseMarginMs(leaseMs);
  // The clock first: a process that is stopped between the two readings must not think that it has more time.
  const readAt = now();
  const endAt = later(readAt, tenure.leftMs);
  return { endAt, killAt: later(endAt, delayAfterLossMs + marginMs - Math.min(marginMs / 4, LONGEST_SLACK_MS)) };
}
