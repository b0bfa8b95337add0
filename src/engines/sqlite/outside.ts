import { HeldLeases } from "../../engine/held-leases.ts";
import type { Finding } from "../../engine/port.ts";
import type { News } from "./messages.ts";
import type { ThreadLink } from "./thread-link.ts";

/** What this connection has to do with other processes, seen from the application's thread. */
export interface Outside {
  /** Leases whose holders are told when they are lost. */
  readonly held: HeldLeases;
  /** From now on somebody here sleeps until the queue has work, or a key to hold. Returns what ends that. */
  asleep?(queue: string, isClaim: boolean): () => void;
  /** From now on somebody here wants to know how the item ends. */
  awaiting?(queue: string, id: string): () => void;
  /** What an operator should know of it. */
  check?(): Promise<readonly Finding[]>;
  close?(): Promise<void>;
}

/**
 * The store's own way, by files beside it. Sleepers are woken in the store's thread, and there is nothing to do for them here. Of a lease that
 * ran out those of the same process are told which it was. Other processes hear only a bell, and each asks about its own leases.
 */
export class OwnOutside implements Outside {
  readonly held: HeldLeases;
  readonly #link: ThreadLink;
  #isHearing = false;
  #isAsking = false;
  #rings = 0;

  constructor(link: ThreadLink) {
    this.#link = link;
    this.held = new HeldLeases((some) => {
      // From the first lease on, and then for good: to begin anew for each would cost more than the lease.
      if (some && !this.#isHearing) link.tell("hear losses");
      this.#isHearing ||= some;
    });
    link.onNews = ({ lost }: News) => {
      for (const lease of lost) this.held.lose(lease);
    };
    link.onLosses = () => void this.#ask();
  }

  /** One question for many rings; those that come while it is asked lead to one more. */
  async #ask(): Promise<void> {
    this.#rings += 1;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      while (this.#rings > 0) {
        this.#rings = 0;
        const leases = this.held.all();
        if (leases.length === 0) break;
        const lapsed = await this.#link.call(
          "lapsed",
          leases.map(({ handle, fence }) => [Number(handle), fence] as const),
        );
        for (const position of lapsed) {
          const lease = leases[position];
          if (lease !== undefined) this.held.lose(lease);
        }
      }
    } catch {
      // The holders find out at their next renewal.
    } finally {
      this.#rings = 0;
      this.#isAsking = false;
    }
  }
}
