import type { Clock, Timer } from "../../domain/clock.ts";
import { LATEST_MS } from "./run-ahead.ts";

/** Streaks that wait for more to write, with one timer for all: in two generations, so that each waits for at least half of the time. */
export class LateWrites {
  readonly #clock: Clock;
  #young = new Set<() => void>();
  #old = new Set<() => void>();
  #timer: Timer | undefined;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(write: () => void): void {
    if (this.#closed) {
      write();
      return;
    }
    if (!this.#old.has(write)) this.#young.add(write);
    this.#timer ??= this.#clock.setTimer(LATEST_MS / 2, () => this.#age());
  }

  /** It was written for another reason. */
  delete(write: () => void): void {
    this.#young.delete(write);
    this.#old.delete(write);
  }

  /** Whatever waits is written, and nothing waits any longer. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    const waiting = [...this.#old, ...this.#young];
    this.#old.clear();
    this.#young.clear();
    for (const write of waiting) write();
  }

  #age(): void {
    const late = this.#old;
    this.#old = this.#young;
    this.#young = new Set();
    this.#timer = this.#old.size > 0 ? this.#clock.setTimer(LATEST_MS / 2, () => this.#age()) : undefined;
    for (const write of late) write();
  }
}
