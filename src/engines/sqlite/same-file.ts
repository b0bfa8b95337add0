import { statSync } from "node:fs";
import { StoreFailure } from "./failure.ts";

/** A look costs microseconds; a busy store makes thousands of transactions a second. */
const LOOK_EVERY_MS = 100;

/**
 * Whether the name still leads to the file that was opened. SQLite does not notice when somebody removes or replaces it, and goes on
 * in a file that nobody else can see: two would hold the same key, and what is accepted would be gone with the process.
 */
export class SameFile {
  readonly #file: string;
  readonly #opened: string | undefined;
  #lookedAt = -Infinity;

  /** Right after the file was opened. */
  constructor(file: string) {
    this.#file = file;
    this.#opened = identityOf(file);
  }

  /** Throws when it does not. From then on nothing may be stored or told. */
  check(monotonic: number): void {
    if (monotonic - this.#lookedAt < LOOK_EVERY_MS) return;
    const found = identityOf(this.#file);
    if (found === this.#opened) {
      this.#lookedAt = monotonic;
      return;
    }
    const what = found === undefined ? "removed" : "replaced by another file";
    throw new StoreFailure(
      "STORE_UNAVAILABLE",
      `${this.#file} was ${what} while it was open. Nothing of this call was stored: other processes would not see it. ` +
        "Put the file back, or start this process again.",
    );
  }
}

function identityOf(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev}/${found.ino}`;
}
