import type { Clock, Timer } from "../../domain/clock.ts";
import type { SubmitCall } from "./lane.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Whoever submits is told after this long that a transaction is open; it may stay so for hours. */
const PATIENCE_MS = 10_000;

interface PutOff {
  readonly since: number;
  readonly pauseMs: number;
  readonly timer: Timer;
  readonly error: unknown;
}

/**
 * Submissions whose id another transaction has submitted, and which is open still: whether they are duplicates is decided when it ends. They
 * are tried again now and then, each by itself, and everything else of the handle goes on.
 */
export class Undecided {
  readonly #clock: Clock;
  readonly #again: (call: SubmitCall) => void;
  readonly #calls = new Map<SubmitCall, PutOff>();
  #closed = false;

  constructor(clock: Clock, again: (call: SubmitCall) => void) {
    this.#clock = clock;
    this.#again = again;
  }

  putOff(call: SubmitCall, error: unknown): void {
    const now = this.#clock.monotonic();
    const { since = now, pauseMs = FIRST_PAUSE_MS } = this.#calls.get(call) ?? {};
    if (this.#closed || now - since >= PATIENCE_MS) {
      this.#calls.delete(call);
      call.reject(error);
      return;
    }
    const timer = this.#clock.setTimer(pauseMs, () => this.#again(call));
    this.#calls.set(call, { since, pauseMs: Math.min(pauseMs * 2, LONGEST_PAUSE_MS), timer, error });
  }

  answered(call: SubmitCall): void {
    this.#calls.delete(call);
  }

  close(): void {
    this.#closed = true;
    for (const [{ reject }, { timer, error }] of this.#calls) {
      timer.cancel();
      reject(error);
    }
    this.#calls.clear();
  }
}
