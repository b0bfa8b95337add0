/**
 * A server may forget that a consumer has given a message back: it stays in the stream, and the consumer takes it for acknowledged (seen of
 * nats-server 2.15.1, under load, of the first message of a stream). Nobody would ever be handed its key. So where a consumer has nothing
 * more, it is looked whether the stream does; and what the consumer has left behind is announced anew.
 */
import { pause } from "../../domain/clock.ts";
import type { KeyStore } from "./key-store.ts";
import { lastToken } from "./subjects.ts";

/** What is on its way to somebody is started or comes again within this. */
const SETTLED_MS = 2_500;
/** Of one level. */
const REST_MS = 2_000;
const MOST_AT_A_TIME = 64;

export class Forgotten {
  readonly #store: KeyStore;
  readonly #isClosed: () => boolean;
  /** Levels that are being looked at, or were a moment ago. */
  readonly #looking = new Set<number>();

  constructor(store: KeyStore, isClosed: () => boolean) {
    this.#store = store;
    this.#isClosed = isClosed;
  }

  /** Its consumer has nothing more. */
  look(level: number): void {
    if (this.#looking.has(level)) return;
    this.#looking.add(level);
    // Nobody waits for it, nor for its end: whatever fails is looked at again.
    void this.#announce(level)
      .catch(() => undefined)
      .then(() => this.#store.clock.setTimer(REST_MS, () => this.#looking.delete(level)));
  }

  async #announce(level: number): Promise<void> {
    const { js, subjects, clock } = this.#store;
    const { stream } = subjects;
    const suspect = await js.next(stream, subjects.readyAt(level), 1);
    if (suspect === undefined) return;
    await pause(clock, SETTLED_MS);
    if (this.#isClosed()) return;
    const first = await js.next(stream, subjects.readyAt(level), 1);
    if (first?.sequence !== suspect.sequence) return;
    const floor = (await js.consumerInfo(stream, subjects.readyConsumer(level)))?.ack_floor?.stream_seq ?? 0;
    let left = MOST_AT_A_TIME;
    for (let stored: typeof first | undefined = first; stored !== undefined && stored.sequence <= floor && left > 0;) {
      const { sequence, subject } = stored;
      if (this.#isClosed()) return;
      await this.#store.change(lastToken(subject), (seen) =>
        seen.state.kind === "ready" && (seen.sequence === sequence || seen.state.announced === sequence)
          ? { ...seen.state, announced: 0 }
          : undefined,
      );
      stored = await js.next(stream, subjects.readyAt(level), sequence + 1);
      left -= 1;
    }
  }
}
