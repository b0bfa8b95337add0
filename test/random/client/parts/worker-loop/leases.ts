import type { EndedItem, Item, Lease } from "../../../../../src/engine/port.ts";
import type { HeldLease } from "../../../../../src/worker/held-item.ts";
import type { Work } from "./deeds.ts";

/** A further item of a run begins only in this time. */
const RUN_MS = 50;
/** Of one for which no slot was free. */
const KEEP_MS = 20;
/** Times are sums of fractions. */
const ROUNDING_MS = 1e-6;

/** One item that was granted, as seen from outside of the loop. */
export interface Seen {
  readonly id: string;
  readonly item: Item;
  readonly work: Work;
  readonly lease: GrantedLease;
  readonly index: number;
  held: HeldLease | undefined;
  begunAt: number;
  end: PromiseWithResolvers<unknown>;
  /** How its handler ended, and what is to become of it. */
  ended: { readonly ending: string; readonly goesOn: boolean } | undefined;
  readonly events: string[];
  /** What the store was asked to do with it, and what it answered last. */
  readonly settled: string[];
  lastAnswer: string | undefined;
}

/** A lease with the run that it covers, as its store sees it. */
export class GrantedLease {
  readonly key: string;
  readonly lease: Lease;
  readonly items: Seen[] = [];
  readonly grantedAt: number;
  readonly leftAtGrantMs: number;
  /** More of the key waits behind the run. */
  readonly hasMore: boolean;
  /** It came after the stop, or something was to run alone: it goes back. */
  isUnwanted = false;
  isSuspect = false;
  /** A renewal was sent: the store takes back what is behind the item that runs. */
  isClosed = false;
  /** A renewal was answered: it covers one item. */
  isSingle = false;
  /** A settlement was sent. */
  isSettled = false;
  /** Of all items that ended, the last one of this lease was that many. */
  endedAs: number | undefined;
  /** The settlement asked for the key's next run, and was not answered. */
  isNextAsked = false;
  /** The item that runs, for all that the store knows. */
  #at = 0;

  constructor(lease: Lease, grantedAt: number, leftAtGrantMs: number, hasMore: boolean) {
    this.hasMore = hasMore;
    this.key = lease.key;
    this.lease = lease;
    this.grantedAt = grantedAt;
    this.leftAtGrantMs = leftAtGrantMs;
  }

  get first(): Seen {
    return this.items[0] as Seen;
  }

  /** The one whose handler was called last. */
  get last(): Seen | undefined {
    return this.items.findLast(({ held }) => held !== undefined);
  }

  get isBegun(): boolean {
    return this.first.held !== undefined;
  }

  /** Something of the key is left behind the item that ran last. */
  get hasNext(): boolean {
    return this.hasMore || (this.last ?? this.first).index + 1 < this.items.length;
  }

  get isLossTold(): boolean {
    return this.items.some(({ events }) => events.some((one) => one.startsWith("lost")));
  }

  get isCancelled(): boolean {
    return this.items.some(({ events }) => events.includes("cancelling"));
  }

  /** It is not to begin, whatever is free. */
  isHopeless(attempts: number): boolean {
    return this.leftAtGrantMs <= 0 || this.first.item.attempt > attempts || this.isLossTold || this.isCancelled;
  }

  isStale(now: number): boolean {
    return now - this.grantedAt >= KEEP_MS - ROUNDING_MS;
  }

  /** There is another item, and it may begin as far as the lease goes. */
  mayGoOn({ index }: Seen, now: number): boolean {
    const isInTime = now - this.lease.since.monotonic < RUN_MS;
    return isInTime && !this.isClosed && index + 1 < this.items.length;
  }

  isReportDue(now: number): boolean {
    const { last } = this;
    const isRunning = last !== undefined && last.index > 0 && last.ended === undefined;
    return isRunning && !this.isClosed && now - this.lease.since.monotonic >= RUN_MS;
  }

  /** A settlement, or a renewal that the store carries out or not, says what has ended. Says what is wrong with that. */
  hear(ended: readonly EndedItem[] | undefined, what: "settled" | "renewed" | "unheard"): string | undefined {
    let at = this.#at;
    for (const { id, ending } of ended ?? []) {
      const index = this.items.findIndex((one) => one.id === id);
      const seen = this.items[index];
      if (seen?.ended?.goesOn !== true) return `${id} is reported, and no other has begun behind it`;
      if (seen.ended.ending !== ending.type) return `${id} is reported as ${ending.type}`;
      if (index > at) return `${id} is reported before those in front of it`;
      if (seen.lastAnswer !== "settled") seen.lastAnswer = undefined;
      seen.settled.push(ending.type);
      at = Math.max(at, index + 1);
    }
    if (what === "renewed") this.#at = at;
    const running = this.last ?? this.first;
    if (at !== running.index)
      return `${running.id} is what ran last, and the store is told that ${this.items[at]?.id ?? "nothing"} is`;
    if (what !== "settled" && ended === undefined && this.items.length > 1 && !this.isSingle)
      return `a renewal of ${this.key} does not say that its run is over`;
    return undefined;
  }
}
