/** How keys stood when this process last wrote them, within bounds. It may be outdated: a write that rests on it is refused. */
import { totalOf } from "./rules.ts";
import type { Seen } from "./state.ts";

const MOST_BYTES = 64 * 1_048_576;
/** One of these would push out too many others. */
const BIGGEST_BYTES = 65_536;
const ENTRY_BYTES = 512;

export class Remembered {
  readonly #entries = new Map<string, { readonly seen: Seen; readonly bytes: number }>();
  #bytes = 0;

  get(key: string): Seen | undefined {
    return this.#entries.get(key)?.seen;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  set(key: string, seen: Seen): void {
    this.delete(key);
    const bytes = ENTRY_BYTES + totalOf(seen.state);
    if (bytes > BIGGEST_BYTES || seen.state.kind === "idle") return;
    this.#entries.set(key, { seen, bytes });
    this.#bytes += bytes;
    for (const [oldest] of this.#entries) {
      if (this.#bytes <= MOST_BYTES) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }
}
