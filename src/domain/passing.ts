/**
 * A map and a set of what comes and goes by the thousand.
 *
 * A plain one fills up with what was deleted and is then copied into a new table. V8 lets the old table point to the new one, for
 * iterators that are under way. Once a table has lived for long enough to be in the old generation, nothing behind it in that row is
 * collected before the whole heap is, nor what it held when it was copied: most of what is in flight survives, and is moved, for
 * nothing. A new map has no such past, so these begin anew every now and then.
 */
const LEAST_BETWEEN = 1_024;

export class PassingMap<K, V> {
  #map = new Map<K, V>();
  #added = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  set(key: K, value: V): void {
    this.#added += 1;
    if (this.#added > LEAST_BETWEEN && this.#added > 4 * this.#map.size) {
      this.#map = new Map(this.#map);
      this.#added = 0;
    }
    this.#map.set(key, value);
  }

  delete(key: K): boolean {
    return this.#map.delete(key);
  }

  clear(): void {
    this.#map = new Map();
    this.#added = 0;
  }

  /** As they are now, whatever happens to them meanwhile. */
  entries(): readonly (readonly [K, V])[] {
    return [...this.#map];
  }

  values(): readonly V[] {
    return [...this.#map.values()];
  }
}

export class PassingSet<T> {
  readonly #map = new PassingMap<T, T>();

  get size(): number {
    return this.#map.size;
  }

  has(value: T): boolean {
    return this.#map.has(value);
  }

  add(value: T): void {
    this.#map.set(value, value);
  }

  delete(value: T): boolean {
    return this.#map.delete(value);
  }

  clear(): void {
    this.#map.clear();
  }

  /** As they are now, whatever happens to them meanwhile. */
  values(): readonly T[] {
    return this.#map.values();
  }

  [Symbol.iterator](): Iterator<T> {
    return this.values().values();
  }
}
