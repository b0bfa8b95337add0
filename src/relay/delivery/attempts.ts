import type { SourceMessage } from "../source.ts";

interface Known {
  /** What the source said, if it counts. */
  readonly seen: number | undefined;
  readonly attempt: number;
  /** Whether that attempt was one: not if the message went back untried. */
  readonly counted: boolean;
}

/** So many messages are remembered. One that is forgotten has the count of its source, or none. */
const MOST_KNOWN = 10_000;

/**
 * Which attempt a delivery is. Most sources count, but many count receipts: a message that went back untried, because
 * its key was busy or the relay stopped, must not be given up for that. Some do not count at all. What this process has
 * seen puts both right, as far as it goes: after a restart, and beside other relays, the number may be too high. So it
 * decides only after a delivery that failed.
 */
export class Attempts {
  readonly #known = new Map<string, Known>();

  /** The number of this delivery, 1 for the first. */
  of({ id, attempt: seen }: SourceMessage): number {
    const known = this.#known.get(id);
    if (known === undefined) return seen ?? 1;
    const expected = known.counted ? known.attempt + 1 : known.attempt;
    if (seen === undefined || known.seen === undefined) return expected;
    // Its queue counts anew: somebody has taken it out of the dead letters.
    if (known.counted && seen <= known.seen) return seen;
    // Those since then that nobody here knows of. If the source counted one that was untried, that is taken off.
    return expected + Math.max(0, seen - known.seen - 1);
  }

  note({ id, attempt: seen }: SourceMessage, attempt: number, counted: boolean): void {
    // A source that counts needs no help, as long as every delivery was one.
    if (counted && seen === attempt) return this.forget(id);
    this.#known.delete(id);
    this.#known.set(id, { seen, attempt, counted });
    if (this.#known.size <= MOST_KNOWN) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }

  forget(id: string): void {
    this.#known.delete(id);
  }
}
