/** The leases that this process holds: how they begin, are kept, and end. Each part of that has a file of its own. */
import type { Grant, HoldRequest, Lease, NextRequest, Renewal, RenewResult, Settlement } from "../../engine/port.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { Freeing, type FreeingHooks } from "./freeing.ts";
import { grantOf, type Names } from "./grant.ts";
import type { KeyStore } from "./key-store.ts";
import { type Ended, LeaseEnds } from "./lease-ends.ts";
import { type Claimant, type First, LeaseStarts } from "./lease-starts.ts";
import { type Held, OwnLeases } from "./own-leases.ts";
import { Renewals } from "./renewals.ts";
import type { Sessions } from "./sessions.ts";
import type { KeyItem, StateLease } from "./state.ts";
import type { Token } from "./token.ts";
import { type Wish, Wishes } from "./wishes.ts";

export interface LeaseHooks extends Names, FreeingHooks {
  /** The last lease of this process has ended. */
  readonly emptied: () => void;
}

export class Leases {
  readonly #names: Names;
  readonly #own: OwnLeases;
  readonly #freeing: Freeing;
  readonly #starts: LeaseStarts;
  readonly #ends: LeaseEnds;
  readonly #renewals: Renewals;
  readonly #wishes: Wishes;

  constructor(store: KeyStore, sessions: Sessions, acknowledgements: Acknowledgements, hooks: LeaseHooks) {
    const freeing = new Freeing(store, sessions, hooks);
    const ranOut = (held: Held): void => store.background(freeing.putBackSurely(held));
    const leases = new OwnLeases(store.clock, sessions, ranOut, hooks.emptied);
    this.#names = hooks;
    this.#own = leases;
    this.#freeing = freeing;
    this.#starts = new LeaseStarts({ store, sessions, acknowledgements, leases, freeing });
    this.#ends = new LeaseEnds({ store, sessions, leases, freeing });
    this.#renewals = new Renewals(store, sessions, leases);
    this.#wishes = new Wishes(store, sessions, hooks.queue, leases, freeing);
  }

  get count(): number {
    return this.#own.count;
  }

  close(): void {
    this.#freeing.close();
    this.#own.close();
  }

  /** All that was begun in the background is done. */
  quiet(): Promise<void> {
    return this.#own.quiet();
  }

  /** Undefined: the key does not stand as it was delivered any more. */
  start(token: Token, claimant: Claimant): Promise<Held | undefined> {
    return this.#starts.start(token, claimant);
  }

  /** A submission and a start in one write, for a claim that waits here. Undefined: there is no session for it, and nothing was done. */
  startFirst(key: string, item: KeyItem, claimant: Claimant): First | undefined {
    return this.#starts.startFirst(key, item, claimant);
  }

  grant(held: Held): Grant {
    return grantOf(held, this.#names);
  }

  settle(settlement: Settlement, next?: NextRequest): Promise<Ended> {
    return this.#ends.settle(settlement, next);
  }

  /** Whether the key of a lease may go on with its next run: its turn is not over. */
  mayGoOn(lease: Lease): boolean {
    return this.#ends.mayGoOn(lease);
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
