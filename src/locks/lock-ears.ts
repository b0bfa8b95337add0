import type { LockCells, Seen } from "./lock-cells.ts";

/** Hears of a lock after it may have changed. Undefined: look for yourself, the store could not be asked. */
export type Heard = (seen: Seen | undefined) => void;

interface Ear {
  readonly listeners: Set<Heard>;
  watch: Promise<{ stop(): void }>;
  /** A read is under way. `again`: something has changed since it began. */
  isReading: boolean;
  again: boolean;
}

/**
 * One watch and one read per change for all who wait for a lock in this process. Without it a hundred waiters would read the record
 * a hundred times whenever one of them is served.
 */
export class LockEars {
  readonly #cells: LockCells;
  readonly #ears = new Map<string, Ear>();

  constructor(cells: LockCells) {
    this.#cells = cells;
  }

  /** From when this resolves, no change goes unheard. */
  async listen(name: string, heard: Heard): Promise<{ stop(): void }> {
    const ear = this.#ears.get(name) ?? this.#open(name);
    ear.listeners.add(heard);
    const stop = (): void => {
      ear.listeners.delete(heard);
      if (ear.listeners.size === 0) this.#close(name, ear);
    };
    try {
      await ear.watch;
      return { stop };
    } catch (error) {
      stop();
      throw error;
    }
  }

  #open(name: string): Ear {
    const hint = (): void => void this.#read(name, ear);
    const ear: Ear = {
      listeners: new Set(),
      watch: this.#cells.watch(name, hint),
      isReading: false,
      again: false,
    };
    this.#ears.set(name, ear);
    return ear;
  }

  #close(name: string, ear: Ear): void {
    if (this.#ears.get(name) === ear) this.#ears.delete(name);
    ear.watch.then(
      (watch) => watch.stop(),
      () => undefined,
    );
  }

  async #read(name: string, ear: Ear): Promise<void> {
    ear.again = true;
    if (ear.isReading) return;
    ear.isReading = true;
    while (ear.again && ear.listeners.size > 0) {
      ear.again = false;
      const seen = await this.#cells.read(name).catch(() => undefined);
      for (const heard of ear.listeners) heard(seen);
    }
    ear.isReading = false;
  }
}
