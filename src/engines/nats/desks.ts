/** The desks of this process's workers, taken together. */
import type { Clock } from "../../domain/clock.ts";
import type { Grant } from "../../engine/port.ts";
import { QUICK_MS } from "./ahead.ts";
import { type Coming, Desk } from "./desk.ts";
import type { Claimant } from "./lease-starts.ts";
import type { Held } from "./own-leases.ts";

export class Desks {
  readonly #desks = new Map<string, Desk>();
  /** Most processes have one worker. */
  #last: Desk | undefined;
  readonly #clock: Clock;
  readonly #grant: (coming: Coming, held: Held) => Grant;

  constructor(clock: Clock, grant: (coming: Coming, held: Held) => Grant) {
    this.#clock = clock;
    this.#grant = grant;
  }

  /** A claim waits. */
  get isAsked(): boolean {
    for (const { claims } of this.#desks.values()) if (claims.length > 0) return true;
    return false;
  }

  /** So long the most patient of those who wait will wait; infinity: that is not known. */
  get waitMs(): number {
    if (!this.isAsked) return Number.POSITIVE_INFINITY;
    let until = 0;
    for (const { claims } of this.#desks.values()) for (const claim of claims) until = Math.max(until, claim.until);
    return Math.max(0, until - this.#clock.monotonic());
  }

  get size(): number {
    return this.#desks.size;
  }

  all(): Iterable<Desk> {
    return this.#desks.values();
  }

  of(claimant: Claimant): Desk {
    const { worker, leaseMs, mostItems } = claimant;
    let desk = this.#last;
    if (desk?.worker === worker && desk.leaseMs === leaseMs && desk.mostItems === mostItems) return desk;
    const name = `${leaseMs} ${mostItems} ${worker}`;
    desk = this.#desks.get(name);
    if (desk === undefined) {
      desk = new Desk(claimant, this.#grant);
      this.#desks.set(name, desk);
    }
    this.#last = desk;
    return desk;
  }

  /** One with a slot for something of this level. */
  lacking(level = 0): Desk | undefined {
    for (const desk of this.#desks.values()) if (desk.openAt(level) > 0) return desk;
    return undefined;
  }

  /** One with a slot that nothing is on its way to. */
  waiting(): Desk | undefined {
    for (const desk of this.#desks.values()) if (desk.open > desk.promised.size) return desk;
    return undefined;
  }

  /** One whose worker will want more in a moment. */
  lackingAhead(): Desk | undefined {
    for (const desk of this.#desks.values()) if (desk.ahead.depth > 0 && desk.lackAhead > 0) return desk;
    return undefined;
  }

  /** Slots that nothing in line will fill. */
  get open(): number {
    let open = 0;
    for (const desk of this.#desks.values()) open += desk.open;
    return open;
  }

  /** Slots that nothing will fill, with those that will come free in a moment. */
  get lackAhead(): number {
    let lack = 0;
    for (const desk of this.#desks.values()) lack += desk.lackAhead;
    return lack;
  }

  /** Somebody is quick: something is started for them ahead. */
  get isAhead(): boolean {
    for (const desk of this.#desks.values()) if (desk.ahead.depth > 0) return true;
    return false;
  }

  get isGiving(): boolean {
    for (const { giving } of this.#desks.values()) if (giving.length > 0) return true;
    return false;
  }

  /** For how long a level may be kept waiting. Undefined: nobody claims. */
  get patienceMs(): number | undefined {
    for (const { claims } of this.#desks.values()) for (const { request } of claims) return request.patienceMs;
    return undefined;
  }

  /** Something more urgent than this is here already. */
  hasEarlier(level: number): boolean {
    for (const desk of this.#desks.values()) if (desk.hasEarlier(level)) return true;
    return false;
  }

  /** What of one level can be given out. False: something of it comes in a moment, and what is less urgent has to wait. */
  gather(level: number, promised: number, now: number): boolean {
    let isWhole = true;
    for (const desk of this.#desks.values()) if (!desk.gather(level, promised, now)) isWhole = false;
    return isWhole;
  }

  /** What nobody came for is released, and its desk is no more. Gives when to look again. */
  letGo(now: number, release: (coming: Coming) => void): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [name, desk] of this.#desks) {
      const goneAt = desk.claims.length > 0 ? Number.POSITIVE_INFINITY : desk.answeredAt + QUICK_MS;
      if (now >= goneAt) desk.ahead.end();
      for (const coming of desk.takeUnwanted(now)) release(coming);
      next = Math.min(next, desk.nextLook(now), now >= goneAt ? Number.POSITIVE_INFINITY : goneAt);
      if (now < goneAt || desk.coming + desk.promised.size > 0) continue;
      this.#desks.delete(name);
      this.#last = undefined;
    }
    return next;
  }
}
