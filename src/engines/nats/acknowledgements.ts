/**
 * Acknowledges deliveries, so that what was delivered is gone when the promise resolves. Where the stream lives on the very
 * server that this connection leads to, acknowledgements wait for each other and share one confirmation: they travel one after the
 * other through one connection into one consumer, and the last cannot arrive without those before it. Elsewhere a part
 * of the way may be lost alone, and each is confirmed by itself.
 */
import type { Clock, Timer } from "../../domain/clock.ts";
import type { JetStream } from "./jetstream.ts";
import type { Wire } from "./wire.ts";

/** So long for others, unless somebody is in a hurry: keys start in bursts, and to send for each part of one costs more than the rest of it. */
const WAIT_MS = 2;
/** What the consumer before delivered is acknowledged within this, unless its process stands still. */
const ANEW_MS = 2_000;

interface Entry {
  readonly reply: string;
  readonly sequence: number;
  readonly resolve: (done: void | Promise<void>) => void;
}

export class Acknowledgements {
  readonly #js: JetStream;
  readonly #wire: Wire;
  readonly #stream: string;
  readonly #clock: Clock;
  /** By consumer: each works off its own in order. */
  #waiting = new Map<string, Entry[]>();
  #timer: Timer | undefined;
  /** Groups on their way. */
  readonly #sent = new Map<string, Set<() => void>>();
  /** Consumers that were made anew: until then some deliveries may be of the one before. */
  readonly #anewUntil = new Map<string, number>();

  constructor(js: JetStream, wire: Wire, stream: string, clock: Clock) {
    this.#js = js;
    this.#wire = wire;
    this.#stream = stream;
    this.#clock = clock;
  }

  /**
   * It is another consumer than before, and says nothing to acknowledgements of what it has not delivered itself: what is to go is removed
   * without it.
   */
  anew(consumer: string): void {
    this.#anewUntil.set(consumer, this.#clock.monotonic() + ANEW_MS);
    for (const giveUp of this.#sent.get(consumer) ?? []) giveUp();
  }

  add(consumer: string, reply: string, sequence: number): Promise<void> {
    if (this.#isAnew(consumer)) return this.#remove(sequence);
    if (!this.#js.isNear(this.#stream)) return this.#js.acknowledge(reply, this.#stream, sequence);
    return new Promise((resolve) => {
      const entry = { reply, sequence, resolve };
      const group = this.#waiting.get(consumer);
      if (group === undefined) this.#waiting.set(consumer, [entry]);
      else group.push(entry);
      this.#timer ??= this.#clock.setTimer(WAIT_MS, () => this.hurry());
    });
  }

  /** Somebody waits for what was added. */
  hurry(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const groups = this.#waiting;
    this.#waiting = new Map();
    for (const [consumer, group] of groups) this.#confirm(consumer, group);
  }

  #confirm(consumer: string, group: readonly Entry[]): void {
    // A consumer that was made anew answers to what it has delivered, and to all that came before that.
    const last = group.reduce((one, other) => (other.sequence > one.sequence ? other : one));
    const sent = this.#sent.get(consumer) ?? new Set();
    this.#sent.set(consumer, sent);
    let isOver = false;
    const end = (settle: (entry: Entry) => void): void => {
      if (isOver) return;
      isOver = true;
      sent.delete(giveUp);
      group.forEach(settle);
    };
    // Nothing is certain about any of them.
    const giveUp = (): void => end(({ sequence, resolve }) => resolve(this.#remove(sequence)));
    sent.add(giveUp);
    try {
      for (const entry of group) if (entry !== last) this.#wire.publish(entry.reply, "+ACK");
      this.#js.confirm(last.reply).then(() => end(({ resolve }) => resolve()), giveUp);
    } catch {
      giveUp();
    }
  }

  #isAnew(consumer: string): boolean {
    const until = this.#anewUntil.get(consumer);
    if (until === undefined) return false;
    if (this.#clock.monotonic() < until) return true;
    this.#anewUntil.delete(consumer);
    return false;
  }

  async #remove(sequence: number): Promise<void> {
    await this.#js.remove(this.#stream, sequence);
  }
}
