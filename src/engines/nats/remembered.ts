/**
 * How keys stood when this process last wrote them, within bounds. It may be outdated: a write that rests on it is refused.
 * Two generations, because a map that loses its oldest entry at every step has to search for it.
 */
import { decodeState } from "./codec.ts";
import { type First, settled } from "./key-store.ts";
import { totalOf } from "./rules.ts";
import type { Seen } from "./state.ts";

const MOST_BYTES = 32 * 1_048_576;
/** One of these would push out too many others. */
const BIGGEST_BYTES = 65_536;
const ENTRY_BYTES = 512;

interface Entry {
  readonly seen: Seen | First;
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
    if ("state" in seen) return settled(seen.sequence, seen.state);
    const { sequence, data } = seen;
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    return { sequence, state: decodeState(bytes, sequence) };
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
  setFirst(key: string, first: First): void {
    const bytes = ENTRY_BYTES + first.data.length;
    if (bytes > BIGGEST_BYTES) this.delete(key);
    else this.#keep(key, first, bytes);
  }

  delete(key: string): void {
    this.#bytes -= this.#young.get(key)?.bytes ?? 0;
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #keep(key: string, seen: Seen | First, bytes: number): void {
    this.#bytes += bytes - (this.#young.get(key)?.bytes ?? 0);
    if (this.#bytes > MOST_BYTES) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#bytes = bytes;
    }
    this.#young.set(key, { seen, bytes });
  }
}
