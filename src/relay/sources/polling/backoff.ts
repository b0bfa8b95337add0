/**
 * After a failure the queue is left alone for a while: up to twice as long each time, with full jitter so that many
 * relays spread.
 */
const FIRST_MS = 200;
const LONGEST_MS = 20_000;

export class Backoff {
  readonly #random: () => number;
  #failures = 0;
  #until = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  failed(): void {
    const most = Math.min(FIRST_MS * 2 ** this.#failures, LONGEST_MS);
    this.#failures = Math.min(this.#failures + 1, 30);
    this.#until = performance.now() + most * this.#random();
  }

  reset(): void {
    this.#failures = 0;
    this.#until = 0;
  }

  leftMs(): number {
    return Math.max(0, this.#until - performance.now());
  }
}
