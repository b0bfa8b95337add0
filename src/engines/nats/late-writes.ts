import type { Clock, Timer } from "../../domain/clock.ts";
import { LATEST_MS } from "./run-ahead.ts";

/** Streaks that wait for more to write, with one timer for all. */
export class LateWrites {
  readonly #clock: Clock;
  #waiting = new Set<() => void>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(write: () => void): void {
    this.#waiting.add(write);
    this.#timer ??= this.#clock.setTimer(LATEST_MS, () => this.now());
  }

  now(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const write of waiting) write();
  }
}
