/**
 * A key that carries several items is known to consumers by its first one, and stands as a record that they do not deliver: to start it from
 * what was delivered is refused. Where that happens again and again, the records of keys that are about to start are read first,
 * those of one turn with one request.
 */
import { asError } from "./as-error.ts";
import { decodeState } from "./codec.ts";
import type { KeyStore } from "./key-store.ts";
import type { Seen } from "./state.ts";
import { lastToken } from "./subjects.ts";

/** Of what is expected, so much comes from the last key. */
const WEIGHT = 1 / 8;
/** A look costs less than to be refused, and more than to be accepted. */
const WORTH = 1 / 4;

interface Asked {
  readonly tell: (record: Seen | undefined) => void;
  readonly fail: (error: Error) => void;
}

export class StartLooks {
  readonly #store: KeyStore;
  /** How likely it is that the next key has such a record. At first nobody knows. */
  #likely = 0.5;
  #asked = new Map<string, Asked>();

  constructor(store: KeyStore) {
    this.#store = store;
  }

  get areWorth(): boolean {
    // Of a cluster's stream each would be asked for by itself.
    return this.#likely > WORTH && !this.#store.js.isReplicated(this.#store.subjects.stream);
  }

  /** Whether a key that was to start had such a record. */
  count(had: boolean): void {
    this.#likely += ((had ? 1 : 0) - this.#likely) * WEIGHT;
  }

  /** The record of a key. Undefined: it has none. */
  at(key: string): Promise<Seen | undefined> {
    return new Promise((tell, fail) => {
      // What everybody in this turn wants is asked for when the turn is over.
      if (this.#asked.size === 0) process.nextTick(() => this.#ask());
      this.#asked.set(key, { tell, fail });
    });
  }

  #ask(): void {
    const asked = this.#asked;
    this.#asked = new Map();
    this.#read([...asked.keys()]).then(
      (records) => asked.forEach(({ tell }, key) => tell(records.get(key))),
      (error: unknown) => asked.forEach(({ fail }) => fail(asError(error))),
    );
  }

  async #read(keys: readonly string[]): Promise<ReadonlyMap<string, Seen>> {
    const { js, subjects } = this.#store;
    const names = keys.map((key) => subjects.record(key));
    const found = await js.lastOfAll(subjects.stream, names);
    return new Map(
      found.map(({ subject, sequence, data }) => [
        lastToken(subject),
        { sequence, state: decodeState(data, sequence) },
      ]),
    );
  }
}
