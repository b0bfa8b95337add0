/** The leases that this process holds: how they begin, are kept, and end. Each part of that has a file of its own. */
import type { Grant, HoldRequest, Lease, Renewal, RenewResult, Settlement, SettleResult } from "../../engine/port.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { BriefLeases } from "./brief-leases.ts";
import { Freeing, type FreeingHooks } from "./freeing.ts";
import { GoingOn, type GoingOnHooks } from "./going-on.ts";
import { grantOf, type Names } from "./grant.ts";
import type { KeyStore } from "./key-store.ts";
import { LeaseEnds } from "./lease-ends.ts";
import { type Claimant, type First, LeaseStarts } from "./lease-starts.ts";
import { type Held, OwnLeases } from "./own-leases.ts";
import { Renewals } from "./renewals.ts";
import type { Sessions } from "./sessions.ts";
import { type SettlementHooks, Settlements } from "./settlements.ts";
import type { KeyItem, StateLease } from "./state.ts";
import type { Token } from "./token.ts";
import { type Wish, Wishes } from "./wishes.ts";

export interface LeaseHooks extends Names, GoingOnHooks, SettlementHooks, FreeingHooks {
  /** The last lease of this process has ended. */
  readonly emptied: () => void;
}

export class Leases {
  readonly #names: Names;
  readonly #own: OwnLeases;
  readonly #briefs: BriefLeases;
  readonly #freeing: Freeing;
  readonly #goingOn: GoingOn;
  readonly #starts: LeaseStarts;
  readonly #ends: LeaseEnds;
  readonly #settlements: Settlements;
  readonly #renewals: Renewals;
  readonly #wishes: Wishes;

  constructor(store: KeyStore, sessions: Sessions, acknowledgements: Acknowledgements, hooks: LeaseHooks) {
    const freeing = new Freeing(store, sessions, hooks);
    const ranOut = (held: Held): void => {
      briefs.forget(held);
      store.background(freeing.putBackSurely(held));
    };
    const own: OwnLeases = new OwnLeases(store, sessions, ranOut, hooks.emptied);
    const briefs = new BriefLeases(store, own, acknowledgements);
    this.#names = hooks;
    this.#own = own;
    this.#briefs = briefs;
    this.#freeing = freeing;
    this.#goingOn = new GoingOn(store, hooks);
    this.#starts = new LeaseStarts(store, sessions, acknowledgements, own, freeing, briefs);
    this.#ends = new LeaseEnds(store, own, freeing, this.#goingOn, hooks.reserve);
    this.#settlements = new Settlements(store, sessions, own, briefs, this.#ends, this.#goingOn, hooks);
    this.#renewals = new Renewals(store, sessions, own);
    this.#wishes = new Wishes(store, sessions, hooks.queue, own, freeing);
  }

  get count(): number {
    return this.#own.count;
  }

  get goingOnCount(): number {
    return this.#goingOn.count;
  }

  /** Settlements on their way that will bring their keys' next items, and the most urgent level among them. */
  get goingOn(): { readonly count: number; readonly level: number } {
    return this.#goingOn;
  }

  /** What was settled is written. */
  async close(): Promise<void> {
    this.#freeing.close();
    this.#goingOn.close();
    await this.#own.close();
    await this.#briefs.close();
  }

  /** All that was begun in the background is done. */
  quiet(): Promise<void> {
    return this.#own.quiet();
  }

  /**
   * Undefined: the key does not stand as it was delivered any more.
   *
   * @param isBrief its item will most likely be done in a moment
   */
  start(token: Token, claimant: Claimant, isBrief: boolean): Promise<Held | undefined> {
    return this.#starts.start(token, claimant, isBrief);
  }

  /** A submission and a start in one write, for a claim that waits here. Undefined: there is no session for it, and nothing was done. */
  startFirst(key: string, item: KeyItem, claimant: Claimant): First | undefined {
    return this.#starts.startFirst(key, item, claimant);
  }

  grant(held: Held): Grant {
    return grantOf(held, this.#names);
  }

  settle(settlement: Settlement): Promise<SettleResult> {
    return this.#settlements.settle(settlement);
  }

  /** Gives back a grant that nobody took. */
  release(held: Held): Promise<void> {
    return this.#ends.release(held);
  }

  /** Ends a lease whose item is not to be run, and says nothing about it. */
  drop(held: Held): Promise<void> {
    return this.#ends.drop(held);
  }

  /** One of the run is not to run: from now on the lease covers its first item only. False: it is lost. */
  narrow(held: Held): Promise<boolean> {
    return this.#renewals.narrow(held);
  }

  renew(renewal: Renewal): Promise<RenewResult> {
    return this.#renewals.renew(renewal);
  }

  /** Says under which session, and as what, a hold is to be had. The same as before, while its session lives. */
  wish(request: HoldRequest, before?: Wish): Promise<Wish> {
    return this.#wishes.wish(request, before);
  }

  /** Its session gives signs of life while somebody waits for what is wished. */
  keepAlive(wish: Wish): { stop(): void } {
    return this.#wishes.keepAlive(wish);
  }

  /** One look at a key that is wished for. */
  hold(key: string, wish: Wish, purpose: "try" | "wait" | "leave"): Promise<Lease | undefined> {
    return this.#wishes.hold(key, wish, purpose);
  }

  /** Frees a key whose lease is over, if it still has the lease that is meant. */
  putBack(key: string, isMeant: (lease: StateLease) => boolean): Promise<void> {
    return this.#freeing.putBack(key, isMeant);
  }
}
