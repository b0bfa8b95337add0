/**
 * How many messages a consumer says are still to be delivered. The real server does not look: it counts along, and its
 * count can be too high. A purge or a rollup that removes exactly one message is told to the consumers under its own
 * pattern, not under the subject of the message. A consumer whose filter does not include the whole pattern misses it.
 */
import type { Messages } from "./messages.ts";

export class PendingCount {
  #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  get value(): number {
    return Math.max(0, this.#count);
  }

  change(by: 1 | -1): void {
    this.#count += by;
  }

  /** Several messages went at once, the consumer has another filter or another leader, or it found no message. */
  recount(count: number): void {
    this.#count = count;
  }

  /** What somebody sees who asks. A count that cannot be is mended then, and only then. */
  shown({ count, lastSequence }: Messages, nextSequence: number): number {
    if (nextSequence > lastSequence) this.#count = 0;
    else if (this.#count > 0) this.#count = Math.min(this.#count, count, lastSequence - nextSequence + 1);
    return this.value;
  }
}
