interface Waiting {
  readonly rank: number;
  readonly begin: () => void;
}

/**
 * The capacity of a route. A message occupies a slot while it is in work, and none while it waits for its key. Whoever
 * comes back from waiting goes before new messages: it is older, and it holds a key.
 */
export class Slots {
  readonly size: number;
  readonly #onChange: () => void;
  readonly #waiting: Waiting[] = [];
  #used = 0;

  constructor(size: number, onChange: () => void) {
    this.size = size;
    this.#onChange = onChange;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.size - this.#used;
  }

  take(): void {
    this.#used += 1;
  }

  /** Resolves with a slot, or with false when the signal fires first. The lower rank goes first. */
  async wait(rank: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#used < this.size) {
      this.take();
      return true;
    }
    return await new Promise<boolean>((resolve) => {
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        resolve(false);
      };
      const waiting: Waiting = {
        rank,
        begin: () => {
          signal.removeEventListener("abort", giveUp);
          resolve(true);
        },
      };
      const behind = this.#waiting.findIndex((other) => other.rank > rank);
      this.#waiting.splice(behind === -1 ? this.#waiting.length : behind, 0, waiting);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  release(): void {
    const next = this.#waiting.shift();
    // The slot goes from hand to hand, so that nobody takes it on the way.
    if (next !== undefined) return next.begin();
    this.#used -= 1;
    this.#onChange();
  }
}
