import type { Outcome, OutcomeRequest } from "../../engine/port.ts";

interface WaitingOutcome {
  readonly id: string;
  readonly resolve: (outcome: Outcome | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** Listens to the signal of whoever asked no longer. */
  readonly stop: () => void;
}

/** What is known of an item: that it is remembered, and how it ended if it has. */
export interface KnownOutcome {
  readonly id: string;
  readonly outcome: Outcome | undefined;
}

/** Those who wait to hear how items of one queue end. */
export class QueueOutcomes {
  readonly #waiting = new Set<WaitingOutcome>();
  look = false;

  get size(): number {
    return this.#waiting.size;
  }

  wait({ id, signal }: OutcomeRequest): Promise<Outcome | undefined> {
    return new Promise((resolve, reject) => {
      const give = (): void => {
        this.#waiting.delete(waiting);
        resolve(undefined);
      };
      const waiting: WaitingOutcome = {
        id,
        resolve,
        reject,
        stop: () => signal.removeEventListener("abort", give),
      };
      signal.addEventListener("abort", give, { once: true });
      this.#waiting.add(waiting);
      if (signal.aborted) give();
    });
  }

  ids(): readonly string[] {
    return [...new Set(Array.from(this.#waiting, ({ id }) => id))];
  }

  /** What is not among them is not remembered: nobody will ever know. */
  tell(asked: readonly string[], known: ReadonlyMap<string, KnownOutcome>): void {
    const ids = new Set(asked);
    for (const waiting of this.#waiting) {
      const found = known.get(waiting.id);
      if (!ids.has(waiting.id) || (found !== undefined && found.outcome === undefined)) continue;
      this.#waiting.delete(waiting);
      waiting.stop();
      waiting.resolve(found?.outcome);
    }
  }

  fail(error: unknown): void {
    for (const { reject, stop } of this.#waiting) {
      stop();
      reject(error);
    }
    this.#waiting.clear();
  }

  end(): void {
    for (const { resolve, stop } of this.#waiting) {
      stop();
      resolve(undefined);
    }
    this.#waiting.clear();
  }
}
