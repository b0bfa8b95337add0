import { closeSync, constants, existsSync, openSync, writeSync } from "node:fs";
import { Wake } from "./wake.ts";

/** For each kind of cell: of as many who wait, one or two wake up for what concerns one of them, and the files stay few. */
const BELLS = 16;

/**
 * Wakes those in other processes who watch cells. With one bell for all, each hand-over of a lock would wake every process that
 * waits for any, which costs more than the hand-over. So each cell has one of a few, by its kind and name: a file like the one of `Wake`,
 * made by the first who listens there. Where there is none, nobody listens.
 */
export class CellBells {
  readonly #file: string;
  readonly #onRing: () => void;
  /** Undefined: it cannot be listened to, and only the rare looks remain. */
  readonly #heard = new Map<string, Wake | undefined>();

  constructor(file: string, onRing: () => void) {
    this.#file = file;
    this.#onRing = onRing;
  }

  /** Listens for these cells, and for no others. True: one was not listened for before, and may have rung already. */
  hear(names: readonly string[]): boolean {
    const wanted = new Set(names.map(bellOf));
    for (const [bell, wake] of this.#heard) {
      if (wanted.has(bell)) continue;
      wake?.close();
      this.#heard.delete(bell);
    }
    const fresh = [...wanted].filter((bell) => !this.#heard.has(bell));
    for (const bell of fresh) this.#heard.set(bell, this.#listen(bell));
    return fresh.length > 0;
  }

  ring(names: readonly string[]): void {
    for (const bell of new Set(names.map(bellOf))) this.#ring(bell);
  }

  close(): void {
    this.hear([]);
  }

  #listen(bell: string): Wake | undefined {
    try {
      return new Wake(this.#path(bell), this.#onRing);
    } catch {
      return undefined;
    }
  }

  #ring(bell: string): void {
    const path = this.#path(bell);
    // Most locks are taken and freed with nobody waiting, and an error costs ten times this question.
    if (!existsSync(path)) return;
    try {
      const descriptor = openSync(path, constants.O_WRONLY);
      try {
        writeSync(descriptor, "!", 0);
      } finally {
        closeSync(descriptor);
      }
    } catch {
      // A full disk must not fail work that is already stored.
    }
  }

  #path(bell: string): string {
    return `${this.#file}-wake-${bell}`;
  }
}

function bellOf(name: string): string {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
  return `${name.slice(0, name.indexOf("/"))}-${hash % BELLS}`;
}
