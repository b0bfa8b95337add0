import type { Hints } from "./hints.ts";

/** Those of one process who sleep because a queue had nothing for them. */
export interface Sleepers {
  /** How many claims of the queue wait. */
  idle(): number;
  /** So many of them should look, best all in one look. */
  wake(count: number): void;
  /** They and whoever else waits, for instance to hold a key, should look: something may concern any of them, or was missed. */
  stir(): void;
}

/**
 * The part of a queue's budget that this process may use. For each piece of work that it hears of, and while somebody is idle,
 * it takes one slot and wakes one sleeper; when the budget is empty, others have enough sleepers up.
 */
export class Slots {
  readonly #name: string;
  readonly #hints: Hints;
  readonly #sleepers: Sleepers;
  #offered = 0;
  #isTaking = false;

  constructor(name: string, hints: Hints, sleepers: Sleepers) {
    this.#name = name;
    this.#hints = hints;
    this.#sleepers = sleepers;
  }

  offer(count: number): void {
    this.#offered += count;
    if (this.#isTaking) return;
    this.#isTaking = true;
    void this.#take();
  }

  async #take(): Promise<void> {
    for (;;) {
      // More slots than sleepers are of no use here. Others may need them.
      this.#offered = Math.min(this.#offered, this.#sleepers.idle());
      if (this.#offered <= 0) break;
      const offered = this.#offered;
      const result = await this.#hints.take(this.#name);
      // What was offered meanwhile may have been added after the budget was looked at.
      this.#offered -= result === "empty" ? offered : 1;
      if (result === "taken" || result === "missing") this.#sleepers.wake(1);
    }
    this.#isTaking = false;
  }
}
