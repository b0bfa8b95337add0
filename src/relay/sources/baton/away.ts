import type { TakenItem } from "../../../index.ts";

/** One more, and the one that has been away for longest comes back: it may be memory that runs out otherwise. */
const MOST = 1_000;

/**
 * Items that go back untried, but not at once. A store delays only retries, and counts those: an item that was never
 * tried would be given up in the end. So it stays taken, its lease renewed by the client, and is let go of later. If
 * this process is lost meanwhile, its lease runs out, which counts as one attempt.
 */
export class Away {
  readonly #timers = new Map<TakenItem<unknown>, NodeJS.Timeout>();
  #isOver = false;

  keep(item: TakenItem<unknown>, delayMs: number): void {
    this.#timers.set(
      item,
      setTimeout(() => void this.#letGo(item), this.#isOver ? 0 : delayMs),
    );
    if (this.#timers.size <= MOST) return;
    const [oldest] = this.#timers.keys();
    if (oldest !== undefined) void this.#letGo(oldest);
  }

  /** All of them go back now. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.#timers.keys()].map((item) => this.#letGo(item)));
  }

  async #letGo(item: TakenItem<unknown>): Promise<void> {
    clearTimeout(this.#timers.get(item));
    this.#timers.delete(item);
    // What the store could not be told, the client tells as an event; the item is back when its lease has run out.
    await item[Symbol.asyncDispose]();
  }
}
