import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../domain/clock.ts";
import { checkOptions, type OptionNames } from "../../domain/options.ts";
import type { Engine } from "../../engine/port.ts";
import { locksOnRegister } from "../../locks/locks-on-register.ts";
import { StoreCore } from "./core.ts";
import { MemoryHandle } from "./handle.ts";
import { MemoryCells, MemoryRegister } from "./register.ts";

export interface MemoryOptions {
  readonly clock?: Clock | undefined;
}

const MEMORY_OPTIONS: OptionNames<MemoryOptions> = { clock: true };

/** State that several handles share, as processes share a database. It lives as long as this object does. */
export class MemoryStore {
  readonly #clock: Clock;
  readonly #core: StoreCore;
  readonly #cells: MemoryCells;

  constructor(options: MemoryOptions = {}) {
    const { clock = systemClock } = checkOptions(options, MEMORY_OPTIONS);
    this.#clock = clock;
    this.#core = new StoreCore(clock);
    this.#cells = new MemoryCells(clock);
  }

  /** One more handle. Closing it leaves the others, and the state, alone. */
  connect(): Engine {
    const register = new MemoryRegister(this.#cells);
    return new MemoryHandle(
      this.#core,
      locksOnRegister({ name: "memory", register, clock: this.#clock, newId: randomUUID, watchesHolds: true }),
    );
  }
}

/** An engine of its own, for one process: tests, tools, and queues that may be forgotten. */
export function memoryEngine(options: MemoryOptions = {}): Engine {
  return new MemoryStore(options).connect();
}
