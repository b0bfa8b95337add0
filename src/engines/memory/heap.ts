/** Something that can stand in one heap at a time. It knows its slot, so that it can be taken out from the middle. */
export interface Ranked {
  /** -1 when it stands in no heap. */
  slot: number;
}

/** A binary heap: the first in O(1), adding and removing in O(log n). */
export class Heap<T extends Ranked> {
  readonly #entries: T[] = [];
  readonly #goesBefore: (a: T, b: T) => boolean;

  constructor(goesBefore: (a: T, b: T) => boolean) {
    this.#goesBefore = goesBefore;
  }

  get size(): number {
    return this.#entries.length;
  }

  first(): T | undefined {
    return this.#entries[0];
  }

  add(entry: T): void {
    if (entry.slot !== -1) throw new Error("A heap entry was added twice.");
    this.#entries.push(entry);
    this.#rise(entry, this.#entries.length - 1);
  }

  /** Does nothing if the entry stands in no heap. */
  remove(entry: T): void {
    const { slot } = entry;
    if (slot === -1) return;
    if (this.#entries[slot] !== entry) throw new Error("A heap entry was removed from a heap that it is not in.");
    entry.slot = -1;
    const last = this.#entries.pop();
    if (last === undefined || last === entry) return;
    // The last entry fills the gap; it may belong above or below it.
    this.#rise(last, slot);
    this.#sink(last, last.slot);
  }

  /** Takes out one after the other, as long as the first is due. Entries that come in meanwhile count. */
  *takeWhile(isDue: (entry: T) => boolean): Generator<T, void, undefined> {
    for (let entry = this.first(); entry !== undefined && isDue(entry); entry = this.first()) {
      this.remove(entry);
      yield entry;
    }
  }

  #rise(entry: T, from: number): void {
    let slot = from;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = this.#entries[parentSlot];
      if (parent === undefined || !this.#goesBefore(entry, parent)) break;
      this.#put(parent, slot);
      slot = parentSlot;
    }
    this.#put(entry, slot);
  }

  #sink(entry: T, from: number): void {
    let slot = from;
    for (;;) {
      let childSlot = 2 * slot + 1;
      let child = this.#entries[childSlot];
      if (child === undefined) break;
      const sibling = this.#entries[childSlot + 1];
      if (sibling !== undefined && this.#goesBefore(sibling, child)) {
        child = sibling;
        childSlot += 1;
      }
      if (!this.#goesBefore(child, entry)) break;
      this.#put(child, slot);
      slot = childSlot;
    }
    this.#put(entry, slot);
  }

  #put(entry: T, slot: number): void {
    this.#entries[slot] = entry;
    entry.slot = slot;
  }
}
