/** Growing pauses between tries, each from half of its length to the whole, so that many who wait do not come back in step. */
export class Backoff {
  readonly #random: () => number;
  readonly #firstMs: number;
  readonly #longestMs: number;
  #nextMs: number;

  constructor(random: () => number, firstMs: number, longestMs: number) {
    this.#random = random;
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
    this.#nextMs = firstMs;
  }

  next(): number {
    const ms = this.#nextMs * (0.5 + this.#random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, this.#longestMs);
    return ms;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
