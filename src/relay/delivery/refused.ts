/** So many are remembered. One that is forgotten is delivered once more when it comes again. */
const MOST_KNOWN = 10_000;

/**
 * Messages that are bad for good, but could not be put away: their source has no dead letters, or the place for them is
 * out of reach. They come again, and are given up again, without being delivered to a receiver that has refused them.
 */
export class Refused {
  readonly #reasons = new Map<string, string>();

  /** Why the message was refused; undefined if it was not, as far as this process knows. */
  reasonFor(id: string): string | undefined {
    return this.#reasons.get(id);
  }

  note(id: string, reason: string): void {
    this.#reasons.delete(id);
    this.#reasons.set(id, reason);
    if (this.#reasons.size <= MOST_KNOWN) return;
    const [oldest] = this.#reasons.keys();
    if (oldest !== undefined) this.#reasons.delete(oldest);
  }

  forget(id: string): void {
    this.#reasons.delete(id);
  }
}
