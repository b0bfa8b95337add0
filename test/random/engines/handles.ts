import type { Engine } from "../../../src/engine/port.ts";

/** The handles of a store that a script plays with, by their numbers. */
export class Handles {
  readonly #open: () => Promise<Engine>;
  readonly #handles: Engine[];

  static async opened(count: number, open: () => Promise<Engine>): Promise<Handles> {
    return new Handles(open, await Promise.all(Array.from({ length: count }, open)));
  }

  private constructor(open: () => Promise<Engine>, handles: Engine[]) {
    this.#open = open;
    this.#handles = handles;
  }

  /** Scripts were made for at least one. */
  at(number: number): Engine {
    const handle = this.#handles[number % this.#handles.length];
    if (handle === undefined) throw new Error("There is no handle.");
    return handle;
  }

  all(): readonly Engine[] {
    return this.#handles;
  }

  async reopen(number: number): Promise<Engine> {
    await this.at(number).close();
    const handle = await this.#open();
    this.#handles[number % this.#handles.length] = handle;
    return handle;
  }

  async reopenAll(): Promise<readonly Engine[]> {
    await this.close();
    for (const number of this.#handles.keys()) this.#handles[number] = await this.#open();
    return this.#handles;
  }

  async close(): Promise<void> {
    await Promise.all(this.#handles.map((handle) => handle.close()));
  }
}
