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

  write({ name, expected, value, ttlMs }: WriteRequest): Promise<number | undefined> {
    return this.#link.call("writeCell", { name, expected, value, ttlMs });
  }

  list(prefix: string): Promise<readonly Cell[]> {
    return this.#link.call("listCells", { prefix });
  }

  async watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    const watch = new CellWatch(this.#link, this.#clock, name, changed);
    watch.begin((await this.read(name))?.version ?? 0);
    this.#watches.add(watch);
    return {
      stop: () => {
        this.#watches.delete(watch);
        watch.stop();
      },
    };
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

  begin(version: number): void {
    // It ends with the store, and has nobody to tell.
    this.#run(version).catch(() => undefined);
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#link.call("abandon", { call: this.#call }).catch(() => undefined);
  }

  async #run(known: number): Promise<void> {
    let version = known;
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
