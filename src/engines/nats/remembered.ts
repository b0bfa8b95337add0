/**
 * How keys stood when this process last wrote them, within bounds. It may be outdated: a write that rests on it is refused.
 * Two generations, because a map that loses its oldest entry at every step has to search for it.
 */
import { settled } from "./key-store.ts";
import { totalOf } from "./rules.ts";
import { type Sent, seenOf } from "./sent.ts";
import type { Seen } from "./state.ts";

const MOST_BYTES = 32 * 1_048_576;
/** One of these would push out too many others. */
const BIGGEST_BYTES = 65_536;
const ENTRY_BYTES = 512;

interface Entry {
  readonly seen: Seen | Sent;
  readonly bytes: number;
}

export class Remembered {
  #young = new Map<string, Entry>();
  #old = new Map<string, Entry>();
  #bytes = 0;

  get(key: string): Seen | undefined {
    const entry = this.#young.get(key) ?? this.#old.get(key);
    if (entry === undefined) return undefined;
    const { seen } = entry;
    return "state" in seen ? settled(seen.sequence, seen.state) : seenOf(seen);
  }

  /** As it was sent, if it still stands so as far as is known. */
  sent(key: string): Sent | undefined {
    const seen = (this.#young.get(key) ?? this.#old.get(key))?.seen;
    return seen !== undefined && "data" in seen ? seen : undefined;
  }

  has(key: string): boolean {
    return this.#young.has(key) || this.#old.has(key);
  }

  set(key: string, seen: Seen): void {
    const bytes = ENTRY_BYTES + totalOf(seen.state);
    if (bytes > BIGGEST_BYTES || seen.state.kind === "idle") {
      this.delete(key);
      return;
    }
    this.#keep(key, seen, bytes);
  }

  /** Most keys are never written again by this process: what was sent is kept, and read when it is needed. */
  setSent(key: string, sent: Sent): void {
    const bytes = ENTRY_BYTES + sent.data.length;
    if (bytes > BIGGEST_BYTES) this.delete(key);
    else this.#keep(key, sent, bytes);
  }

  delete(key: string): void {
    this.#bytes -= this.#young.get(key)?.bytes ?? 0;
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #keep(key: string, seen: Seen | Sent, bytes: number): void {
    this.#bytes += bytes - (this.#young.get(key)?.bytes ?? 0);
    if (this.#bytes > MOST_BYTES) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#bytes = bytes;
    }
    this.#young.set(key, { seen, bytes });
  }
}
