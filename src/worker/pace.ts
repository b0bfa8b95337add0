import type { Grant } from "../engine/port.ts";

/** A handler that takes longer gets one item at a time, and no key before there is a free slot for it. */
const QUICK_MS = 5;
/** The weight of the newest item in the mean: one slow item among quick ones is felt for a while. */
const NEWEST_SHARE = 1 / 8;
/** A run is not to be longer than what one settlement can carry with ease. */
const MOST_ITEMS = 64;
/** More keys at once make no round trip cheaper that can be measured. */
const MOST_AHEAD = 256;

/** A store answers with what it has at hand: an answer with less than this share of what was asked for says that little more is ready. */
const LITTLE_SHARE = 1 / 10;
/** After a run was asked for and no key had more than one item, so many claims ask for none: to look for what is behind costs the store a little. */
const SINGLES = 15;

export interface PaceBounds {
  /** How long a run may last. */
  readonly runMs: number;
  /** How long a key may be kept before it is begun. */
  readonly keepMs: number;
  readonly slots: number;
}

/** How quick a worker's handler is, and what that allows to ask for. */
export class Pace {
  readonly #bounds: PaceBounds;
  #meanMs: number | undefined;
  #ahead = 0;
  /** Keys were kept for too long, and no item has ended since: those that run take longer than those before them. */
  #isHeldUp = false;
  /** Claims that are to ask for one item of a key. */
  #singles = 0;
  /** Of the last answer, on average. */
  #itemsOfRun = 1;
  /** As many items as runs got through lately. */
  #mostItems = MOST_ITEMS;

  constructor(bounds: PaceBounds) {
    this.#bounds = bounds;
  }

  /** An item took so long, from its handler's begin to its end. */
  note(ms: number): void {
    this.#isHeldUp = false;
    this.#meanMs = this.#meanMs === undefined ? ms : this.#meanMs + (ms - this.#meanMs) * NEWEST_SHARE;
  }

  /**
   * A claim was answered with keys. While many come, it pays to ask for more of them than there are slots, for twice as many each time.
   * Where few are ready, others may be idle, and keys are left to them.
   */
  answered({ max, items }: { readonly max: number; readonly items: number }, grants: readonly Grant[]): void {
    this.#ahead =
      grants.length >= max * LITTLE_SHARE
        ? Math.min(Math.max(this.#bounds.slots, this.#ahead * 2), MOST_AHEAD)
        : Math.floor(this.#ahead / 2);
    let granted = grants.length;
    for (const { behind } of grants) granted += behind?.length ?? 0;
    if (grants.length > 0) this.#itemsOfRun = granted / grants.length;
    if (items === 1) this.#singles = Math.max(0, this.#singles - 1);
    else this.#singles = grants.some(({ behind }) => behind !== undefined) ? 0 : SINGLES;
  }

  /**
   * A run is over, and so many of its items had begun. Where its time ran out before, the answer was long on its way or its keys were many: what goes
   * back unbegun costs the store twice, so the next runs are as short, and become longer again when they are worked off.
   */
  runOver(begun: number, covered: number): void {
    if (begun < covered) this.#mostItems = Math.max(1, begun);
    else if (covered >= this.#mostItems) this.#mostItems = Math.min(this.#mostItems * 2, MOST_ITEMS);
  }

  /** Keys were kept for too long: nothing is taken ahead before an item has ended, and then it begins anew. */
  keptTooLong(): void {
    this.#ahead = 0;
    this.#isHeldUp = true;
  }

  /** The most items of a run. */
  get items(): number {
    return this.#singles > 0 ? 1 : this.#within(this.#bounds.runMs, this.#mostItems, 1);
  }

  /** Keys to be claimed beyond the free slots. A key takes as long as its run. */
  get ahead(): number {
    return this.#isHeldUp
      ? 0
      : this.#within((this.#bounds.keepMs * this.#bounds.slots) / this.#itemsOfRun, this.#ahead, 0);
  }

  /** As many as a quick handler gets through in half of this time, so that one that slows down still does. */
  #within(ms: number, most: number, least: number): number {
    if (this.#meanMs === undefined || this.#meanMs >= QUICK_MS) return least;
    return Math.max(least, Math.min(most, Math.floor(ms / 2 / this.#meanMs)));
  }
}
