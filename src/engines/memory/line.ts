/** Something that can stand in one line at a time. It carries its own links, so that leaving the middle is O(1). */
export interface Linked<T> {
  ahead: T | undefined;
  behind: T | undefined;
}

/** People standing in line: join at the back or the front, leave from anywhere. All in O(1). */
export class Line<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get first(): T | undefined {
    return this.#first;
  }

  get size(): number {
    return this.#size;
  }

  joinBack(entry: T): void {
    entry.ahead = this.#last;
    entry.behind = undefined;
    if (this.#last === undefined) this.#first = entry;
    else this.#last.behind = entry;
    this.#last = entry;
    this.#size += 1;
  }

  joinFront(entry: T): void {
    entry.ahead = undefined;
    entry.behind = this.#first;
    if (this.#first === undefined) this.#last = entry;
    else this.#first.ahead = entry;
    this.#first = entry;
    this.#size += 1;
  }

  /** The one that is passed must stand in this line. */
  joinBehind(passed: T, entry: T): void {
    if (passed.behind === undefined) return this.joinBack(entry);
    entry.ahead = passed;
    entry.behind = passed.behind;
    passed.behind.ahead = entry;
    passed.behind = entry;
    this.#size += 1;
  }

  /** The entry must stand in this line. */
  leave(entry: T): void {
    if (entry.ahead === undefined) this.#first = entry.behind;
    else entry.ahead.behind = entry.behind;
    if (entry.behind === undefined) this.#last = entry.ahead;
    else entry.behind.ahead = entry.ahead;
    entry.ahead = undefined;
    entry.behind = undefined;
    this.#size -= 1;
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let entry = this.#first; entry !== undefined;) {
      // Read first: whoever walks the line may take the entry out of it.
      const { behind } = entry;
      yield entry;
      entry = behind;
    }
  }
}
