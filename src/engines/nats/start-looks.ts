/**
 * A key that carries several items is known to consumers by its first one, and stands as a record that they do not deliver: to start it from
 * what was delivered is refused. Where that happens again and again, the records of keys that are about to start are read first,
 * those of one turn with one request.
 */
import type { KeyStore } from "./key-store.ts";
import { readRecords } from "./records.ts";
import type { Seen } from "./state.ts";

/** Of what is expected, so much comes from the last key. */
const WEIGHT = 1 / 8;
/** A look costs less than to be refused, and more than to be accepted. */
const WORTH = 1 / 4;

export class StartLooks {
  readonly #store: KeyStore;
  /** How likely it is that the next key has such a record. At first nobody knows. */
  #likely = 0.5;
  /** Of this turn. */
  #keys = new Set<string>();
  #reading: Promise<ReadonlyMap<string, Seen>> | undefined;

  constructor(store: KeyStore) {
    this.#store = store;
  }

  get areWorth(): boolean {
    // Of a cluster's stream each would be asked for by itself.
    return this.#likely > WORTH && !this.#store.js.isReplicated(this.#store.subjects.stream);
  }

  /** Whether a key that was to start did not stand as it was delivered. */
  count(didNot: boolean): void {
    this.#likely += ((didNot ? 1 : 0) - this.#likely) * WEIGHT;
  }

  /** The record of a key. Undefined: it has none, or that is not known. */
  async at(key: string): Promise<Seen | undefined> {
    this.#keys.add(key);
    this.#reading ??= this.#readTurn();
    return (await this.#reading).get(key);
  }

  /** What everybody in this turn wants is asked for when the turn is over. */
  async #readTurn(): Promise<ReadonlyMap<string, Seen>> {
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const keys = this.#keys;
    this.#keys = new Set();
    this.#reading = undefined;
    const { js, subjects } = this.#store;
    const names = Array.from(keys, (key) => subjects.record(key));
    try {
      const found = readRecords(await js.lastOfSome(subjects.stream, names));
      return new Map(found.map((record) => [record.key, record]));
    } catch {
      // Nothing depends on it: whatever is not known is tried as it was delivered.
      return new Map();
    }
  }
}
