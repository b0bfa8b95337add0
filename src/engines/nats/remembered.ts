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

/** Most are kept as they were sent, and say themselves how large they are. */
type Entry = Sent | { readonly seen: Seen; readonly size: number };

export class Remembered {
  #young = new Map<string, Entry>();
  #old = new Map<string, Entry>();
  #bytes = 0;

  get(key: string): Seen | undefined {
    const entry = this.#young.get(key) ?? this.#old.get(key);
    if (entry === undefined) return undefined;
    return "data" in entry ? seenOf(entry) : settled(entry.seen.sequence, entry.seen.state);
  }

  /** As it was sent; or that it is known, but only by reading. */
  peek(key: string): Sent | "known" | undefined {
    const entry = this.#young.get(key) ?? this.#old.get(key);
    return entry === undefined || "data" in entry ? entry : "known";
  }

  set(key: string, seen: Seen): void {
    if (seen.state.kind === "idle") this.delete(key);
    else this.#keep(key, { seen, size: totalOf(seen.state) });
  }

  /** Most keys are never written again by this process: what was sent is kept, and read when it is needed. */
  setSent(key: string, sent: Sent): void {
    this.#keep(key, sent);
  }

  delete(key: string): void {
    this.#bytes -= bytesOf(this.#young.get(key));
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #keep(key: string, entry: Entry): void {
    const bytes = bytesOf(entry);
    if (bytes > BIGGEST_BYTES) {
      this.delete(key);
      return;
    }
    this.#bytes += bytes - bytesOf(this.#young.get(key));
    if (this.#bytes > MOST_BYTES) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#bytes = bytes;
    }
    this.#young.set(key, entry);
  }
}

function bytesOf(entry: Entry | undefined): number {
  if (entry === undefined) return 0;
  return ENTRY_BYTES + ("data" in entry ? entry.data.length : entry.size);
}
