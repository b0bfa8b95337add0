import { Closed } from "../../domain/errors.ts";
import { type Clock, pause } from "../../domain/clock.ts";
import type { Cell, Register, WriteRequest } from "../../locks/register.ts";
import type { ThreadLink } from "./thread-link.ts";

/** A store that could not be asked is asked again after this. */
const TRY_AGAIN_MS = 500;

/** The cells of the store, as locks see them. A watch is a call that the thread answers when the cell is at another version. */
export class SqliteRegister implements Register {
  readonly #link: ThreadLink;
  readonly #clock: Clock;
  readonly #watches = new Set<CellWatch>();

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
    const watch = new CellWatch(this.#link, this.#clock, name, changed);
    this.#watches.add(watch);
    watch.begin();
    await Promise.resolve();
    return {
      stop: () => {
        this.#watches.delete(watch);
        watch.stop();
      },
    };
  }

  /** Whoever is told has its cell written. */
  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.watch(name, told);
  }

  /** The thread is the engine's, and outlives its register. */
  async close(): Promise<void> {
    for (const watch of this.#watches) watch.stop();
    await Promise.resolve();
  }
}

class CellWatch {
  readonly #link: ThreadLink;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #changed: () => void;
  #call = 0;
  #stopped = false;

  constructor(link: ThreadLink, clock: Clock, name: string, changed: () => void) {
    this.#link = link;
    this.#clock = clock;
    this.#name = name;
    this.#changed = changed;
  }

  begin(): void {
    // It ends with the store, and has nobody to tell.
    this.#run().catch(() => undefined);
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#link.call("abandon", { call: this.#call }).catch(() => undefined);
  }

  async #run(): Promise<void> {
    // Whoever watches asks the thread for everything else after this, and so misses nothing.
    let version: number | undefined;
    while (!this.#stopped) {
      const { number, reply } = this.#link.start("watchCell", { name: this.#name, version });
      this.#call = number;
      try {
        const now = await reply;
        if (this.#stopped || now === undefined) return;
        version = now;
      } catch (error) {
        if (error instanceof Closed) return;
        await pause(this.#clock, TRY_AGAIN_MS);
      }
      if (!this.#stopped) this.#changed();
    }
  }
}
