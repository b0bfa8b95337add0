/**
 * Acknowledges deliveries, so that what was delivered is gone when the promise resolves. Where the stream lives on the very
 * server that this connection leads to, acknowledgements of one turn share one confirmation: they travel one after the
 * other through one connection into one consumer, and the last cannot arrive without those before it. Elsewhere a part
 * of the way may be lost alone, and each is confirmed by itself.
 */
import type { JetStream } from "./jetstream.ts";
import type { Wire } from "./wire.ts";

interface Entry {
  readonly reply: string;
  readonly sequence: number;
  readonly resolve: (done: void | Promise<void>) => void;
}

export class Acknowledgements {
  readonly #js: JetStream;
  readonly #wire: Wire;
  readonly #stream: string;
  /** By consumer: each works off its own in order. */
  #waiting = new Map<string, Entry[]>();

  constructor(js: JetStream, wire: Wire, stream: string) {
    this.#js = js;
    this.#wire = wire;
    this.#stream = stream;
  }

  add(consumer: string, reply: string, sequence: number): Promise<void> {
    if (!this.#js.isNear(this.#stream)) return this.#js.acknowledge(reply, this.#stream, sequence);
    return new Promise((resolve) => {
      const entry = { reply, sequence, resolve };
      const group = this.#waiting.get(consumer);
      if (group !== undefined) {
        group.push(entry);
        return;
      }
      if (this.#waiting.size === 0) queueMicrotask(() => this.#send());
      this.#waiting.set(consumer, [entry]);
    });
  }

  #send(): void {
    const groups = this.#waiting;
    this.#waiting = new Map();
    for (const group of groups.values()) void this.#confirm(group);
  }

  async #confirm(group: readonly Entry[]): Promise<void> {
    const last = group.at(-1);
    if (last === undefined) return;
    try {
      for (const { reply } of group) if (reply !== last.reply) this.#wire.publish(reply, "+ACK");
      await this.#js.confirm(last.reply);
      for (const { resolve } of group) resolve();
    } catch {
      // Nothing is certain about any of them.
      for (const { reply, sequence, resolve } of group) resolve(this.#js.acknowledge(reply, this.#stream, sequence));
    }
  }
}
