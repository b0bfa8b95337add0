import type { EndedItem, Grant, Item, Lease } from "../engine/port.ts";

/**
 * A further item begins only so long after the lease was asked for: so late, at most, are a pause, a cancel, or something more urgent
 * that comes while a run lasts. A settlement and a claim in this time cost next to nothing.
 */
export const RUN_MS = 50;

/** An item that ended while its run went on. */
export interface Finished {
  readonly item: Item;
  readonly ending: EndedItem["ending"];
}

/**
 * The items of a key that one lease covers, worked off one after the other.
 *
 *   open ──an item is done, and there is time──▶ open    (the next one begins)
 *     └────a failure, a stop, no time, a report by renewal──▶ closed    (what has not begun goes back with the lease)
 */
export class Run {
  readonly lease: Lease;
  readonly first: Item;
  /** How many items the grant had. */
  readonly covered: number;
  #behind: readonly Item[];
  #begun = 0;
  readonly #finished: Finished[] = [];
  /** More of the key waits behind what the lease covers, as far as its store knew. */
  #hasMoreBehind: boolean;
  /** For all that the store knows, the lease covers more than the item that runs. */
  #isCovering: boolean;

  constructor({ lease, item, behind = [], more }: Grant) {
    this.lease = lease;
    this.first = item;
    this.#hasMoreBehind = more === true;
    this.#behind = behind;
    this.covered = 1 + behind.length;
    this.#isCovering = behind.length > 0;
  }

  /** Those that the store has not heard of, as of now. */
  get finished(): readonly Finished[] {
    return [...this.#finished];
  }

  /** The item that may begin after this one. Undefined: the run is over, and this item's end is its last. */
  next(item: Item, ending: Finished["ending"], now: number): Item | undefined {
    const next = now - this.lease.since.monotonic < RUN_MS ? this.#behind[this.#begun] : undefined;
    if (next === undefined) return undefined;
    this.#begun += 1;
    this.#finished.push({ item, ending });
    return next;
  }

  /** How many have begun, if the first has. */
  get begun(): number {
    return 1 + this.#begun;
  }

  /** Something of the key is left when the item that runs has ended. */
  get hasMore(): boolean {
    return this.#hasMoreBehind || this.#begun < this.#behind.length;
  }

  /** If an item runs by then, the store is to hear of those that ended before it. */
  get reportDueAt(): number {
    return this.#finished.length > 0 ? this.lease.since.monotonic + RUN_MS : Infinity;
  }

  /** Nothing begins any more. */
  close(): void {
    this.#hasMoreBehind = this.hasMore;
    this.#behind = [];
  }

  /** What a report says of it: nothing, for one item alone. */
  report(): { readonly ended?: readonly EndedItem[] } {
    if (!this.#isCovering) return {};
    return { ended: this.#finished.map(({ item, ending }) => ({ id: item.id, ending })) };
  }

  /** The store has heard of all that ended so far, and that nothing follows the item that runs. Those that are news: two answers may say so. */
  reported(): readonly Finished[] {
    this.#isCovering = false;
    return this.#finished.splice(0);
  }
}
