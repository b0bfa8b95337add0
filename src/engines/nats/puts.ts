/**
 * The writes of one queue. Each goes by itself; where the server syncs every write to its disk, which the URL says, those that wait go together as an
 * atomic batch, which it stores with one sync: ten times as many a second. A server that does not sync needs longer for a batch.
 *
 * Nothing rests on their being stored together. Of a batch that was refused nothing is stored, and each goes apart; of one whose reply was lost
 * nobody knows what became of any, as of a single write.
 */
import type { PutResult } from "./api-replies.ts";
import type { PutOptions } from "./headers.ts";
import type { JetStream } from "./jetstream.ts";
import type { Nonces } from "./nonce.ts";
import { Lost } from "./requests.ts";

/** Fewer are quicker apart: a batch takes the server as long as a dozen syncs. */
export const FEWEST_TOGETHER = 12;
/** The server takes up to 1,000. Where batches are refused, because somebody else changes the same keys, they become smaller for a while. */
const MOST_TOGETHER = 500;
const LEAST_MOST = 24;
const GROWTH = 1.25;
const MOST_BYTES = 4 * 1_048_576;

export interface Put {
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly options: PutOptions;
  /** Whether it changes what it checks. A batch checks all before it stores any, so none may be in one behind a change of what it checks. */
  readonly changes: boolean;
  readonly resolve: (result: PutResult) => void;
  readonly reject: (error: Error) => void;
}

export class Puts {
  readonly #js: JetStream;
  readonly #stream: string;
  readonly #nonces: Nonces;
  readonly #fewest: number | undefined;
  readonly #waiting: Put[] = [];
  /** A batch is on its way. What comes meanwhile waits for it: writes are stored in the order in which they were asked for. */
  #isSending = false;
  #most = MOST_TOGETHER;

  /** @param fewest so many that wait go together; undefined: never */
  constructor(js: JetStream, stream: string, nonces: Nonces, fewest: number | undefined) {
    this.#js = js;
    this.#stream = stream;
    this.#nonces = nonces;
    this.#fewest = fewest;
  }

  put(put: Put): void {
    if (this.#fewest === undefined || !this.#js.takesBatches(this.#stream)) return this.#sendApart(put);
    this.#waiting.push(put);
    // With whatever else is asked for until then.
    if (this.#waiting.length === 1 && !this.#isSending) process.nextTick(() => this.#send());
  }

  #send(): void {
    while (this.#waiting.length > 0 && !this.#isSending) {
      const batch = this.#take();
      if (batch.length >= (this.#fewest ?? Infinity)) this.#sendTogether(batch);
      else for (const put of batch) this.#sendApart(put);
    }
  }

  /** Those that can go next, in their order. */
  #take(): readonly Put[] {
    const isChanged = new Map<string | undefined, boolean>();
    let bytes = 0;
    const end = this.#waiting.findIndex(({ data, options: { check }, changes }, place) => {
      bytes += data.length;
      const before = isChanged.get(check);
      isChanged.set(check, changes);
      const isAgain = before === true || (before === false && changes);
      return place > 0 && (isAgain || bytes > MOST_BYTES || place >= this.#most);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  #sendApart({ subject, data, options, resolve, reject }: Put): void {
    this.#js.putThen(subject, data, options, resolve, reject);
  }

  #sendTogether(batch: readonly Put[]): void {
    this.#isSending = true;
    const over = (each: (put: Put, place: number) => void): void => {
      this.#isSending = false;
      try {
        batch.forEach(each);
      } finally {
        this.#send();
      }
    };
    this.#js.putTogether(
      this.#nonces.next(),
      batch,
      (first) => {
        if (first === undefined) {
          this.#most = Math.max(LEAST_MOST, Math.floor(batch.length / 2));
          over((put) => this.#sendApart(put));
          return;
        }
        this.#most = Math.min(MOST_TOGETHER, Math.ceil(this.#most * GROWTH));
        over(({ resolve }, place) => resolve({ refused: false, sequence: first + place }));
      },
      // What is not lost was never sent whole: one of them is too large, or all is closed. Apart, each hears its own.
      (error) => over((put) => (error instanceof Lost ? put.reject(error) : this.#sendApart(put))),
    );
  }
}
