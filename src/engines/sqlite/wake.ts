import { closeSync, constants, type FSWatcher, openSync, watch, writeSync } from "node:fs";

/**
 * Wakes the processes that share the file. Whoever changed something that a sleeper may want writes one byte into a
 * file beside the store, and the operating system tells all who watch it. A wake can be lost, and correctness does
 * not depend on one: sleepers also look by themselves, rarely.
 */
export class Wake {
  readonly #descriptor: number;
  readonly #watcher: FSWatcher | undefined;

  constructor(wakeFile: string, onRing: () => void) {
    this.#descriptor = openSync(wakeFile, constants.O_RDWR | constants.O_CREAT, 0o666);
    try {
      this.#watcher = watch(wakeFile, { persistent: false }, onRing);
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      // Out of watches, or a file system without them: the rare looks remain.
      this.#watcher = undefined;
    }
  }

  ring(): void {
    try {
      writeSync(this.#descriptor, RING, 0, 1, 0);
    } catch {
      // A full disk must not fail work that is already stored.
    }
  }

  close(): void {
    this.#watcher?.close();
    closeSync(this.#descriptor);
  }
}

const RING = Buffer.from("!");
