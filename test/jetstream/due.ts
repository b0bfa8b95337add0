/** Things that happen to messages by themselves: each at a moment of the wall clock, unless the message is gone by then. */
import type { Clock } from "../../src/domain/clock.ts";
import { Alarm } from "./alarm.ts";

interface Entry {
  readonly wallMs: number;
  readonly happen: () => void;
}

export class Due {
  readonly #clock: Clock;
  readonly #entries = new Map<number, Entry>();
  readonly #alarm: Alarm;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#alarm = new Alarm(clock, () => this.#ring());
  }

  set(sequence: number, wallMs: number, happen: () => void): void {
    this.#entries.set(sequence, { wallMs, happen });
    this.#arm(wallMs);
  }

  cancel(sequence: number): void {
    if (this.#entries.delete(sequence) && this.#entries.size === 0) this.#alarm.cancel();
  }

  clear(): void {
    this.#entries.clear();
    this.#alarm.cancel();
  }

  #arm(wallMs: number): void {
    this.#alarm.noLaterThan(this.#clock.monotonic() + Math.max(0, wallMs - this.#clock.wall()));
  }

  #ring(): void {
    const now = this.#clock.wall();
    const ripe = [...this.#entries].filter(([, { wallMs }]) => wallMs <= now);
    for (const [sequence, entry] of ripe.toSorted(([, a], [, b]) => a.wallMs - b.wallMs)) {
      if (this.#entries.delete(sequence)) entry.happen();
    }
    for (const { wallMs } of this.#entries.values()) this.#arm(wallMs);
  }
}
