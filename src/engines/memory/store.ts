import { type Clock, systemClock } from "../../domain/clock.ts";
import type { Engine } from "../../engine/port.ts";
import { StoreCore } from "./core.ts";
import { MemoryHandle } from "./handle.ts";

export interface MemoryOptions {
  readonly clock?: Clock;
}

/** State that several handles share, as processes share a database. It lives as long as this object does. */
export class MemoryStore {
  readonly #core: StoreCore;

  constructor(options: MemoryOptions = {}) {
    this.#core = new StoreCore(options.clock ?? systemClock);
  }

  /** One more handle. Closing it leaves the others, and the state, alone. */
  connect(): Engine {
    return new MemoryHandle(this.#core);
  }
}

/** An engine of its own, for one process: tests, tools, and queues that may be forgotten. */
export function memoryEngine(options: MemoryOptions = {}): Engine {
  return new MemoryStore(options).connect();
}
