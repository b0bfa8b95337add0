/**
 * The writes of one queue. They go apart, each by itself, until many wait and each takes long: then the server syncs every one of them to its
 * disk. From then on those that wait go together, as an atomic batch, which it stores with one sync: ten times as many a second. A
 * server that does not sync needs longer for a batch, so after a while it is tried again how long each takes apart.
 *
 * Nothing rests on their being stored together. Of a batch that was refused nothing is stored, and each goes apart; of one whose reply was lost
 * nobody knows what became of any, as of a single write.
 */
import type { Clock } from "../../domain/clock.ts";
import type { PutResult } from "./api-replies.ts";
import type { PutOptions } from "./headers.ts";
import type { JetStream } from "./jetstream.ts";
import type { Nonces } from "./nonce.ts";
import { Pace } from "./pace.ts";

/** Fewer are quicker apart: a batch takes the server as long as a dozen syncs. */
const FEWEST_TOGETHER = 12;
/** The server takes up to 1,000. */
const MOST_TOGETHER = 500;
const MOST_BYTES = 4 * 1_048_576;

export interface Put {
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly options: PutOptions;
  /** Whether it changes what it checks. Of those that do, and those that do not, a batch has no two of one key: it checks them all before it stores any. */
  readonly changes: boolean;
  readonly resolve: (result: PutResult) => void;
  readonly reject: (error: Error) => void;
}

export class Puts {
  readonly #js: JetStream;
  readonly #stream: string;
  readonly #nonces: Nonces;
  readonly #pace: Pace;
  readonly #fewest: number;
  readonly #waiting: Put[] = [];
  /** A batch is on its way. What comes meanwhile waits for it: writes are stored in the order in which they were asked for. */
  #isSending = false;

  /** @param always together, whatever it takes apart: for tests */
  constructor(js: JetStream, stream: string, clock: Clock, nonces: Nonces, always: boolean) {
    this.#js = js;
    this.#stream = stream;
    this.#nonces = nonces;
    this.#pace = new Pace(clock, always);
    this.#fewest = always ? 1 : FEWEST_TOGETHER;
  }

  put(put: Put): void {
    if (!this.#isSending && this.#waiting.length === 0 && !this.#isTogether()) {
      this.#sendApart(put);
      return;
    }
    this.#waiting.push(put);
    // When all of this turn are known.
    if (this.#waiting.length === 1 && !this.#isSending) process.nextTick(() => this.#send());
  }

  #isTogether(): boolean {
    return this.#pace.isSlow && this.#js.takesBatches(this.#stream);
  }

  #send(): void {
    while (this.#waiting.length > 0 && !this.#isSending) {
      const batch = this.#take();
      if (batch.length >= this.#fewest && this.#isTogether()) this.#sendTogether(batch);
      else for (const put of batch) this.#sendApart(put);
    }
  }

  /** Those that can go next, in their order. */
  #take(): readonly Put[] {
    const changes = new Map<string | undefined, boolean>();
    let bytes = 0;
    const end = this.#waiting.findIndex(({ data, options: { check }, changes: doesChange }, place) => {
      bytes += data.length;
      const isIn = changes.get(check);
      changes.set(check, doesChange);
      const isApart = isIn !== undefined && (isIn || doesChange);
      return place > 0 && (isApart || bytes > MOST_BYTES || place === MOST_TOGETHER);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  #sendApart({ subject, data, options, resolve, reject }: Put): void {
    const pace = this.#pace;
    pace.sent();
    this.#js.putThen(
      subject,
      data,
      options,
      (result) => {
        pace.heard();
        resolve(result);
      },
      (error) => {
        pace.heard();
        reject(error);
      },
    );
  }

  #sendTogether(batch: readonly Put[]): void {
    const began = this.#pace.begin();
    this.#isSending = true;
    const over = (each: (put: Put, place: number) => void): void => {
      this.#isSending = false;
      batch.forEach(each);
      this.#send();
    };
    this.#js.putTogether(
      this.#nonces.next(),
      batch,
      (first) => {
        this.#pace.end(began, batch.length);
        if (first === undefined) over((put) => this.#sendApart(put));
        else over(({ resolve }, place) => resolve({ refused: false, sequence: first + place }));
      },
      (error) => over(({ reject }) => reject(error)),
    );
  }
}
