import { systemClock } from "../../domain/clock.ts";

/**
 * Whether the application's event loop turns, as the store's thread can see it without waiting for a message.
 *
 * The store's thread goes on when the application's is blocked. Work that it took then would wait for a handler that cannot begin, until
 * its lease has run out; others could have had it at once. So it takes work only for an application that has just shown life.
 */

/** A sign of life counts for this long: longer than a batch waits for the disk, too short to be felt by work that waits. */
const FRESH_MS = 10;
/** An event loop that is idle answers in a tenth of this. One that does not is asked no more, and answers when it turns again. */
const ANSWER_MS = 2;

/** The last sign of life, in milliseconds of the clock that all threads share. */
const LIFE = 0;
/** How many questions were answered. */
const ANSWERS = 1;
/** 1: the store's thread has put something off until the next answer. */
const PUT_OFF = 2;
const CELLS = 3;

export class Pulse {
  readonly shared: SharedArrayBuffer;
  readonly #cells: Int32Array;
  /** In the store's thread: the number of answers before the question that is open. */
  #asked: number | undefined;

  /** @param shared what the other thread was given */
  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(CELLS * Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared;
    this.#cells = new Int32Array(shared);
  }

  /** In the application's thread: its event loop turns. */
  beat(): void {
    Atomics.store(this.#cells, LIFE, milliseconds());
  }

  /** In the application's thread, when it was asked. True: the store's thread has put something off, and must look again. */
  answer(): boolean {
    this.beat();
    Atomics.add(this.#cells, ANSWERS, 1);
    Atomics.notify(this.#cells, ANSWERS);
    return Atomics.exchange(this.#cells, PUT_OFF, 0) === 1;
  }

  /** In the store's thread. False: it is to put off what it would have taken; it is told to look when the event loop turns again. */
  isAlive(ask: () => void): boolean {
    if (this.#isFresh()) return true;
    // The answer counts from when this thread sees it: a thread that was held up itself must not ask for ever.
    if (this.#isAnswered()) this.#asked = undefined;
    if (this.#asked === undefined) {
      this.#asked = Atomics.load(this.#cells, ANSWERS);
      ask();
      Atomics.wait(this.#cells, ANSWERS, this.#asked, ANSWER_MS);
      if (this.#isAnswered()) return true;
    }
    Atomics.store(this.#cells, PUT_OFF, 1);
    // An answer that came before the mark did not see it.
    return this.#isAnswered();
  }

  #isAnswered(): boolean {
    return this.#asked !== undefined && Atomics.load(this.#cells, ANSWERS) !== this.#asked;
  }

  #isFresh(): boolean {
    // Both are cut to 32 bits; so is the difference, and it is right for three weeks.
    const ageMs = (milliseconds() - Atomics.load(this.#cells, LIFE)) | 0;
    return ageMs >= 0 && ageMs <= FRESH_MS;
  }
}

function milliseconds(): number {
  return Math.floor(systemClock.monotonic()) | 0;
}
