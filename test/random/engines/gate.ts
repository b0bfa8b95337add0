/** Lets so many through at a time, first come first served. */
export class Gate {
  #free: number;
  readonly #line: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  async enter(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#line.push(resolve));
  }

  leave(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
