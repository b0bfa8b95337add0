import type { Readable } from "node:stream";

/** The end of what a command says is usually the reason; the item's failure keeps about this much. */
const TAIL_BYTES = 2_048;
/** A daemon that the command started may keep the pipe open for ever. */
const DRAIN_MS = 100;

/** Passes on what a command writes to standard error, and keeps the end of it. */
export class StderrTail {
  readonly #source: Readable | null;
  readonly #closed: Promise<void>;
  #kept: Buffer = Buffer.alloc(0);

  constructor(source: Readable | null, target: NodeJS.WritableStream) {
    this.#source = source;
    this.#closed = new Promise((resolve) => (source === null ? resolve() : source.once("close", resolve)));
    source?.on("error", () => undefined);
    source?.on("data", (chunk: Buffer) => {
      this.#kept = Buffer.concat([this.#kept, chunk]).subarray(-TAIL_BYTES);
      // A reader that is slow slows the command down, not us.
      if (!target.write(chunk) && !source.isPaused()) {
        source.pause();
        target.once("drain", () => source.resume());
      }
    });
  }

  /** Everything there was, once the command has exited. */
  async drained(): Promise<string> {
    let timer: NodeJS.Timeout | undefined;
    const longEnough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, DRAIN_MS);
    });
    await Promise.race([this.#closed, longEnough]);
    clearTimeout(timer);
    return this.#kept.toString("utf8").trim();
  }

  /** Nobody waits for what a daemon may still say. */
  close(): void {
    this.#source?.destroy();
  }
}
