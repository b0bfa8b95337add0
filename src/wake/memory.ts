import { type Clock, systemClock } from "../domain/clock.ts";
import { Closed } from "../domain/errors.ts";
import { HINT_LIFE_MS, type HintResult, type HintStore, type WakeAdapter, type WakeMessage } from "./port.ts";

interface Budget {
  readonly left: number;
  readonly until: number;
}

/** Wakes within one process: for stores that several connections of it share, and to read the contract in its simplest form. */
export class MemoryWakes {
  readonly #listeners = new Map<string, Set<(text: string) => void>>();
  readonly #hints: HintStore;

  constructor({ clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.#hints = new MemoryHints(clock);
  }

  connect(): WakeAdapter {
    const own = new Set<() => void>();
    let isClosed = false;
    return {
      name: "memory",
      hints: this.#hints,
      publish: async (messages) => {
        if (isClosed) throw new Closed("The connection that carries wakes");
        this.#publish(messages);
      },
      listen: async (channel, heard) => {
        const stop = this.#listen(channel, heard);
        own.add(stop);
        return async () => {
          own.delete(stop);
          stop();
        };
      },
      close: async () => {
        isClosed = true;
        for (const stop of own) stop();
      },
    };
  }

  #publish(messages: readonly WakeMessage[]): void {
    for (const { channel, text } of messages) {
      for (const heard of this.#listeners.get(channel) ?? []) setImmediate(heard, text);
    }
  }

  #listen(channel: string, heard: (text: string) => void): () => void {
    const all = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, all);
    // One function may listen twice.
    const one = (text: string): void => {
      if (all.has(one)) heard(text);
    };
    all.add(one);
    return () => {
      all.delete(one);
      if (all.size === 0 && this.#listeners.get(channel) === all) this.#listeners.delete(channel);
    };
  }
}

class MemoryHints implements HintStore {
  readonly #clock: Clock;
  readonly #budgets = new Map<string, Budget>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async add(name: string, count: number): Promise<void> {
    this.#set(name, (this.#left(name) ?? 0) + count);
  }

  async take(name: string): Promise<HintResult> {
    const left = this.#left(name);
    if (left === undefined) return "missing";
    if (left === 0) return "empty";
    this.#set(name, left - 1);
    return "taken";
  }

  #left(name: string): number | undefined {
    const budget = this.#budgets.get(name);
    return budget === undefined || budget.until <= this.#clock.monotonic() ? undefined : budget.left;
  }

  #set(name: string, left: number): void {
    this.#budgets.set(name, { left, until: this.#clock.monotonic() + HINT_LIFE_MS });
  }
}

const OF_THIS_PROCESS = new MemoryWakes();

/** All who ask for it in this process hear one another. */
export function memoryWake(): WakeAdapter {
  return OF_THIS_PROCESS.connect();
}
