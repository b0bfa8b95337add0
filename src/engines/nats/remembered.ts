/**
 * How keys stood when this process last wrote them, within bounds. It may be outdated: a write that rests on it is refused.
 * Two generations, because a map that loses its oldest entry at every step has to search for it.
 *
 * Where every item has a key of its own, nobody ever asks: then only a few are kept, to notice when that changes. To keep them all would
 * cost a fifth of what this process does for a submission in bulk, most of it for collecting them.
 */
import { settled } from "./key-store.ts";
import { totalOf } from "./rules.ts";
import { type Sent, seenOf } from "./sent.ts";
import type { Seen } from "./state.ts";

const MOST_BYTES = 32 * 1_048_576;
/** So much is kept before it is judged whether anybody asks; then one in so many. */
const TRIAL_BYTES = 8 * 1_048_576;
const ONE_IN = 16;
/** One of these would push out too many others. */
const BIGGEST_BYTES = 65_536;
const ENTRY_BYTES = 512;

/** Most are kept as they were sent, and say themselves how large they are. */
type Entry = Sent | { readonly seen: Seen; readonly size: number };

export class Remembered {
  #young = new Map<string, Entry>();
  #old = new Map<string, Entry>();
  #bytes = 0;
  /** Whether somebody has asked for one of those that are kept. */
  #isAsked = false;
  /** Nobody has, for a while. */
  #isIdle = false;
  #passed = 0;

  get(key: string): Seen | undefined {
    const entry = this.#find(key);
    if (entry === undefined) return undefined;
    return "data" in entry ? seenOf(entry) : settled(entry.seen.sequence, entry.seen.state);
  }

  /** As it was sent; or that it is known, but only by reading. */
  peek(key: string): Sent | "known" | undefined {
    const entry = this.#find(key);
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

  #find(key: string): Entry | undefined {
    const entry = this.#young.get(key) ?? this.#old.get(key);
    if (entry === undefined) return undefined;
    this.#isAsked = true;
    this.#isIdle = false;
    return entry;
  }

  #keep(key: string, entry: Entry): void {
    if (this.#isIdle && (this.#passed = (this.#passed + 1) % ONE_IN) !== 0) return;
    const bytes = bytesOf(entry);
    if (bytes > BIGGEST_BYTES) {
      this.delete(key);
      return;
    }
    this.#bytes += bytes - bytesOf(this.#young.get(key));
    if (this.#bytes > (this.#isAsked ? MOST_BYTES : TRIAL_BYTES)) {
      this.#old = this.#isAsked ? this.#young : new Map<string, Entry>();
      this.#young = new Map();
      this.#isIdle = !this.#isAsked;
      this.#isAsked = false;
      this.#bytes = bytes;
    }
    this.#young.set(key, entry);
  }
}

function bytesOf(entry: Entry | undefined): number {
  if (entry === undefined) return 0;
  return ENTRY_BYTES + ("data" in entry ? entry.data.length : entry.size);
}
