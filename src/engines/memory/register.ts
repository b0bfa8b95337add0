import type { Clock, Timer } from "../../domain/clock.ts";
import { Closed } from "../../domain/errors.ts";
import type { Cell, Register, WriteRequest } from "../../locks/register.ts";

interface StoredCell extends Cell {
  /** Monotonic. Stepping the wall clock must not end a session. */
  readonly goneAt: number;
  readonly timer: Timer | undefined;
}

/** The cells behind all handles of a memory store. */
export class MemoryCells {
  readonly #clock: Clock;
  readonly #cells = new Map<string, StoredCell>();
  readonly #watches = new Map<string, Set<() => void>>();
  #lastVersion = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  read(name: string): Cell | undefined {
    const cell = this.#cells.get(name);
    // A timer may be late.
    return cell === undefined || cell.goneAt <= this.#clock.monotonic() ? undefined : cell;
  }

  write({ name, expected, value, ttlMs, tell = [] }: WriteRequest): number | undefined {
    if ((this.read(name)?.version ?? 0) !== expected) return undefined;
    this.#lastVersion += 1;
    this.#cells.get(name)?.timer?.cancel();
    this.#cells.delete(name);
    if (value !== undefined) this.#put(name, this.#lastVersion, value, ttlMs);
    for (const told of [name, ...tell]) for (const changed of this.#watches.get(told) ?? []) changed();
    return this.#lastVersion;
  }

  list(prefix: string): readonly Cell[] {
    const names = [...this.#cells.keys()].filter((name) => name.startsWith(prefix)).toSorted();
    return names.map((name) => this.read(name)).filter((cell) => cell !== undefined);
  }

  watch(name: string, changed: () => void): { stop(): void } {
    // Two watches may have been given one callback.
    const watch = (): void => changed();
    const watches = this.#watches.get(name) ?? new Set();
    this.#watches.set(name, watches.add(watch));
    return {
      stop: () => {
        watches.delete(watch);
        if (watches.size === 0 && this.#watches.get(name) === watches) this.#watches.delete(name);
      },
    };
  }

  #put(name: string, version: number, value: string, ttlMs: number | undefined): void {
    const timer = ttlMs === undefined ? undefined : this.#clock.setTimer(ttlMs, () => this.#drop(name, version));
    const goneAt = ttlMs === undefined ? Infinity : this.#clock.monotonic() + ttlMs;
    this.#cells.set(name, { name, version, value, goneAt, timer });
  }

  #drop(name: string, version: number): void {
    if (this.#cells.get(name)?.version === version) this.#cells.delete(name);
  }
}

/** One handle's way to the cells. */
export class MemoryRegister implements Register {
  readonly #cells: MemoryCells;
  readonly #watches = new Set<{ stop(): void }>();
  #closed = false;

  constructor(cells: MemoryCells) {
    this.#cells = cells;
  }

  async read(name: string): Promise<Cell | undefined> {
    return this.#open().read(name);
  }

  async write(request: WriteRequest): Promise<number | undefined> {
    return this.#open().write(request);
  }

  async list(prefix: string): Promise<readonly Cell[]> {
    return this.#open().list(prefix);
  }

  async watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    const watch = this.#open().watch(name, changed);
    this.#watches.add(watch);
    return {
      stop: () => {
        watch.stop();
        this.#watches.delete(watch);
      },
    };
  }

  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.watch(name, told);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const watch of this.#watches) watch.stop();
  }

  #open(): MemoryCells {
    if (this.#closed) throw new Closed();
    return this.#cells;
  }
}
