/** So many messages are remembered. One that is forgotten has the count of its queue. */
const MOST_KNOWN = 10_000;

/**
 * How often messages were received here and went back untried: their key was busy, no slot was free, or the application
 * could not be reached. Queues that count receipts count those, too.
 */
export class Untried {
  readonly #counts = new Map<string, number>();

  of(id: string): number {
    return this.#counts.get(id) ?? 0;
  }

  note(id: string): void {
    const count = this.of(id) + 1;
    this.#counts.delete(id);
    this.#counts.set(id, count);
    if (this.#counts.size <= MOST_KNOWN) return;
    const [oldest] = this.#counts.keys();
    if (oldest !== undefined) this.#counts.delete(oldest);
  }

  forget(id: string): void {
    this.#counts.delete(id);
  }
}
