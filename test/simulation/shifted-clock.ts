import type { Clock, Timer } from "../../src/domain/clock.ts";
import type { Planned, VirtualTime } from "./virtual-time.ts";

/** An ordinary moment; the monotonic clocks start elsewhere, so that the two are never mixed up unnoticed. */
const EPOCH_MS = 1_700_000_000_000;

/**
 * One party's view of time. All monotonic clocks run at the rate of true time, each from its own zero; the wall
 * clock can be stepped. `deliver` decides whether and when a timer that is due reaches its owner.
 */
export class ShiftedClock implements Clock {
  readonly #time: VirtualTime;
  readonly #zero: number;
  readonly #deliver: (callback: () => void) => void;
  #wallShift: number;

  constructor(time: VirtualTime, zero: number, wallShift: number, deliver: (callback: () => void) => void) {
    this.#time = time;
    this.#zero = zero;
    this.#wallShift = wallShift;
    this.#deliver = deliver;
  }

  monotonic(): number {
    return this.#zero + this.#time.now;
  }

  /** Whole milliseconds, like Date.now(). */
  wall(): number {
    return EPOCH_MS + Math.floor(this.#time.now + this.#wallShift);
  }

  step(byMs: number): void {
    this.#wallShift += byMs;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    let state: "set" | "over" = "set";
    const planned: Planned = this.#time.after(delayMs, () =>
      this.#deliver(() => {
        // Cancelled while it was held back: a process that wakes up may clear a timer that is already due.
        if (state === "over") return;
        state = "over";
        callback();
      }),
    );
    return {
      cancel: () => {
        state = "over";
        planned.cancel();
      },
    };
  }
}
