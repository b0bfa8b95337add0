/** Holds: leases of a key without an item, which somebody wishes for until it is theirs. */
import type { HoldRequest, Lease } from "../../engine/port.ts";
import type { Freeing } from "./freeing.ts";
import { leaseOf } from "./grant.ts";
import type { KeyStore } from "./key-store.ts";
import { newLease, seenIfMine, sinceOf } from "./new-lease.ts";
import type { OwnLeases } from "./own-leases.ts";
import { hold, want, wantNoMore } from "./rules.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { Seen, StateLease } from "./state.ts";

/** A hold that somebody waits for, or tries to have. */
export interface Wish {
  readonly session: Session;
  readonly lease: StateLease;
}

export class Wishes {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #queue: string;
  readonly #leases: OwnLeases;
  readonly #freeing: Freeing;

  constructor(store: KeyStore, sessions: Sessions, queue: string, leases: OwnLeases, freeing: Freeing) {
    this.#store = store;
    this.#sessions = sessions;
    this.#queue = queue;
    this.#leases = leases;
    this.#freeing = freeing;
  }

  /** Says under which session, and as what, a hold is to be had. The same as before, while its session lives. */
  async wish({ worker, leaseMs }: HoldRequest, before?: Wish): Promise<Wish> {
    this.#store.background(this.#sessions.watch());
    const session = await this.#sessions.get(leaseMs);
    if (before?.session === session) return before;
    return { session, lease: newLease(this.#store, session, worker, sinceOf(session, this.#store.clock)) };
  }

  /** Its session gives signs of life while somebody waits for what is wished. */
  keepAlive({ session }: Wish): { stop(): void } {
    this.#sessions.begin(session);
    return { stop: () => this.#sessions.end(session) };
  }

  /**
   * One look at the key: has it if it was handed over, or takes it if nobody has it. If somebody has, whoever waits says that it is
   * wanted. Whoever leaves takes it only if it was handed over, and otherwise nothing is left of the wish.
   */
  async hold(key: string, { session, lease }: Wish, purpose: "try" | "wait" | "leave"): Promise<Lease | undefined> {
    if (purpose !== "leave") await this.#freeing.freeOfDead(key);
    const since = sinceOf(session, this.#store.clock);
    let written: Seen | undefined;
    try {
      written = await this.#store.change(key, ({ state }) => {
        // Written once more: so it is known to be still so, and what its giver left to do is done.
        if (state.lease?.nonce === lease.nonce) return { ...state };
        if (purpose === "leave") return wantNoMore(state, lease);
        if (state.lease === undefined) return hold(state, lease);
        return purpose === "wait" ? want(state, lease) : undefined;
      });
    } catch (error) {
      written = await seenIfMine(this.#store, key, lease, error);
      // It may still be known.
      if (written === undefined && purpose === "leave") throw error;
    }
    if (written?.state.lease?.nonce !== lease.nonce) return undefined;
    return leaseOf(this.#leases.take({ key, seen: written, session, worker: lease.worker, since }), this.#queue);
  }
}
