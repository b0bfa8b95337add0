/** Something that will happen. */
export interface Planned {
  cancel(): void;
}

interface Entry {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** Times are multiples of this power of two, so that sums of them are exact and two clocks never differ by rounding. */
const STEPS_PER_MS = 64;

/**
 * The only time there is in a run: a list of things to happen, in order of time, and of planning where the time is
 * the same. Nothing passes between two of them.
 */
export class VirtualTime {
  now = 0;
  readonly #heap: Entry[] = [];
  #planned = 0;

  /** Milliseconds from now until the next event. */
  get nextAt(): number | undefined {
    this.#dropCancelled();
    return this.#heap[0]?.at;
  }

  after(delayMs: number, run: () => void): Planned {
    const delay = Math.ceil(Math.max(0, delayMs) * STEPS_PER_MS) / STEPS_PER_MS;
    const entry: Entry = { at: this.now + delay, order: this.#planned, run };
    this.#planned += 1;
    this.#push(entry);
    return { cancel: () => (entry.run = undefined) };
  }

  /** Makes the next thing happen. False when there is none. */
  step(): boolean {
    this.#dropCancelled();
    const entry = this.#pop();
    if (entry === undefined) return false;
    this.now = entry.at;
    entry.run?.();
    return true;
  }

  #dropCancelled(): void {
    while (this.#heap[0] !== undefined && this.#heap[0].run === undefined) this.#pop();
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let slot = heap.length;
    heap.push(entry);
    while (slot > 0) {
      const above = (slot - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || goesBefore(parent, entry)) break;
      heap[slot] = parent;
      slot = above;
    }
    heap[slot] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let slot = 0;
    for (;;) {
      let below = 2 * slot + 1;
      let child = heap[below];
      if (child === undefined) break;
      const right = heap[below + 1];
      if (right !== undefined && goesBefore(right, child)) {
        below += 1;
        child = right;
      }
      if (goesBefore(last, child)) break;
      heap[slot] = child;
      slot = below;
    }
    heap[slot] = last;
    return first;
  }
}

function goesBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
