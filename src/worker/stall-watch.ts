import { type EventLoopUtilization, performance } from "node:perf_hooks";

/** A timer that is later than this was held up by something worth telling. */
const LATE_SHARE = 1 / 6;
const LATE_MS = 200;

export interface Stall {
  readonly lateMs: number;
  readonly cause: "event loop blocked" | "process suspended";
}

/** Tells why a timer came late: the only trace that a stall leaves in the process that stood still. */
export class StallWatch {
  #loop: EventLoopUtilization = performance.eventLoopUtilization();

  /** A timer was set. */
  begin(): void {
    this.#loop = performance.eventLoopUtilization();
  }

  /** It fired, or should have. Undefined: early enough for a lease of this length. */
  end(lateMs: number, leaseMs: number): Stall | undefined {
    if (!isLate(lateMs, leaseMs)) return undefined;
    // A loop that was blocked counts the time as active; a process that was stopped was nearly always waiting.
    const { active } = performance.eventLoopUtilization(this.#loop);
    return {
      lateMs: Math.round(lateMs),
      cause: active > lateMs * 0.8 ? "event loop blocked" : "process suspended",
    };
  }
}

/** Whether a lease of this length may have suffered. */
export function isLate(lateMs: number, leaseMs: number): boolean {
  return lateMs >= Math.max(LATE_MS, leaseMs * LATE_SHARE);
}
