/** Short texts that are made by one process only: a random part per process, and a count. */
export class Nonces {
  readonly own: string;
  #count = 0;

  /** @param random of this process: 16 characters or more of a subject token */
  constructor(random: string) {
    this.own = random;
  }

  next(): string {
    this.#count += 1;
    return `${this.own}${this.#count.toString(36)}`;
  }
}
