/** Hears whether somebody has knocked: before anybody changes a key that this process has for a moment, they say so to its session. */
import type { KeyStore } from "./key-store.ts";

export class Knocks {
  readonly #store: KeyStore;
  /** By session: the newest that was heard of. */
  readonly #heard = new Map<string, number>();
  /** By session: what everybody in this turn waits for. */
  readonly #asking = new Map<string, Promise<number>>();

  constructor(store: KeyStore) {
    this.#store = store;
  }

  /** The sequence of the newest, as the server knows it after this call; 0 for none. One question for all who ask in one turn. */
  newest(session: string): Promise<number> {
    let asking = this.#asking.get(session);
    if (asking === undefined) {
      asking = this.#ask(session);
      this.#asking.set(session, asking);
    }
    return asking;
  }

  async #ask(session: string): Promise<number> {
    await new Promise<void>((resolve) => process.nextTick(resolve));
    this.#asking.delete(session);
    const { js, subjects } = this.#store;
    const found = await js.last(subjects.stream, subjects.knock(session));
    const heard = this.#heard.get(session) ?? 0;
    if (found === undefined || found.sequence <= heard) return heard;
    this.#heard.set(session, found.sequence);
    // It is known here from now on, and nobody else has to hear of it.
    this.#store.background(js.remove(subjects.stream, found.sequence));
    return found.sequence;
  }
}
