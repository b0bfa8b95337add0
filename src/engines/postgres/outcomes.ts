import type { Outcome, OutcomeRequest } from "../../engine/port.ts";
import { type Answer, answered } from "./answered.ts";

interface WaitingOutcome extends Answer<Outcome | undefined> {
  readonly id: string;
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
      const giveUp = (): void => {
        this.#waiting.delete(waiting);
        resolve(undefined);
      };
      const waiting: WaitingOutcome = { id, ...answered(signal, giveUp, { resolve, reject }) };
      this.#waiting.add(waiting);
      if (signal.aborted) giveUp();
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
      waiting.resolve(found?.outcome);
    }
  }

  fail(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }

  end(): void {
    for (const { resolve } of this.#waiting) resolve(undefined);
    this.#waiting.clear();
  }
}
