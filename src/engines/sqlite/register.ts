import { Closed } from "../../domain/errors.ts";
import { type Clock, pause } from "../../domain/clock.ts";
import type { Cell, Register, WriteRequest } from "../../locks/register.ts";
import type { ThreadLink } from "./thread-link.ts";

/** A store that could not be asked is asked again after this. */
const TRY_AGAIN_MS = 500;

/** With the call that waits. */
type Watch = { call: number };

/** The cells of the store, as locks see them. A watch is a call that the thread answers when the cell is at another version. */
export class SqliteRegister implements Register {
  readonly #link: ThreadLink;
  readonly #clock: Clock;
  readonly #watches = new Set<Watch>();

  constructor(link: ThreadLink, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  read(name: string): Promise<Cell | undefined> {
    return this.#link.call("readCell", { name });
  }

  write({ name, expected, value, ttlMs, tell = [], isQuiet = false }: WriteRequest): Promise<number | undefined> {
    return this.#link.call("writeCell", { name, expected, value, ttlMs, tell, isQuiet });
  }

  list(prefix: string): Promise<readonly Cell[]> {
    return this.#link.call("listCells", { prefix });
  }

  async watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    const watch: Watch = { call: 0 };
    this.#watches.add(watch);
    // It ends with the store, and has nobody to tell.
    this.#run(watch, name, changed).catch(() => undefined);
    await Promise.resolve();
    return { stop: () => this.#stop(watch) };
  }

  /** Whoever is told has its cell written. */
  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.watch(name, told);
  }

  /** The thread is the engine's, and outlives its register. */
  async close(): Promise<void> {
    for (const watch of this.#watches) this.#stop(watch);
    await Promise.resolve();
  }

  #stop(watch: Watch): void {
    if (!this.#watches.delete(watch)) return;
    this.#link.call("abandon", { call: watch.call }).catch(() => undefined);
  }

  async #run(watch: Watch, name: string, changed: () => void): Promise<void> {
    // Whoever watches asks the thread for everything else after this, and so misses nothing.
    let version: number | undefined;
    while (this.#watches.has(watch)) {
      const { number, reply } = this.#link.start("watchCell", { name, version });
      watch.call = number;
      try {
        const now = await reply;
        if (now === undefined) return;
        version = now;
      } catch (error) {
        if (error instanceof Closed) return;
        await pause(this.#clock, TRY_AGAIN_MS);
      }
      if (this.#watches.has(watch)) changed();
    }
  }
}
