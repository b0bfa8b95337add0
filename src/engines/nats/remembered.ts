/**
 * How keys stood when this process last wrote them, within bounds. It may be outdated: a write that rests on it is refused.
 * Two generations, because a map that loses its oldest entry at every step has to search for it.
 */
import { settled } from "./key-store.ts";
import { totalOf } from "./rules.ts";
import type { Seen } from "./state.ts";

const MOST_BYTES = 32 * 1_048_576;
/** One of these would push out too many others. */
const BIGGEST_BYTES = 65_536;
const ENTRY_BYTES = 512;

export class Remembered {
  #young = new Map<string, Seen>();
  #old = new Map<string, Seen>();
  #bytes = 0;

  get(key: string): Seen | undefined {
    const seen = this.#young.get(key) ?? this.#old.get(key);
    return seen === undefined ? undefined : settled(seen.sequence, seen.state);
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
    this.#bytes += bytes;
    if (this.#bytes > MOST_BYTES) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#bytes = bytes;
    }
    this.#young.set(key, seen);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
