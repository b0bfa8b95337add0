/** Keys that were not started here, until the server has them again. */
import type { KeyStore } from "./key-store.ts";
import type { Token } from "./token.ts";
import { sendUnanswered } from "./unanswered.ts";
import type { Wire } from "./wire.ts";

export class GoingBack {
  readonly #store: KeyStore;
  readonly #wire: Wire;
  readonly #goingBack = new Set<Promise<void>>();
  #closed = false;

  constructor(store: KeyStore, wire: Wire) {
    this.#store = store;
    this.#wire = wire;
  }

  /** Nobody asks any more: what goes back is not waited for. */
  close(): void {
    this.#closed = true;
  }

  get size(): number {
    return this.#goingBack.size;
  }

  all(): Promise<unknown> {
    return Promise.all(this.#goingBack);
  }

  add({ delivery }: Token): void {
    if (delivery === undefined) return;
    if (this.#closed) {
      sendUnanswered(this.#wire, delivery.reply, "-NAK");
      return;
    }
    const back: Promise<void> = this.#store.js
      .confirm(delivery.reply, "-NAK")
      .catch(() => undefined)
      .finally(() => this.#goingBack.delete(back));
    this.#goingBack.add(back);
  }
}
