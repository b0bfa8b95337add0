import type { Clock } from "../../domain/clock.ts";
import type { Link } from "./link.ts";

/** A server that gave no second connection is asked again after so long. */
const AGAIN_MS = 30_000;
/** So many leases that end are worth a step beside another: with fewer, each of the two would cost more than they gain. */
const WORTH_A_STEP = 48;

/**
 * A second connection, for a step beside another: the server needs longer for an item than a worker that has nothing to do but ask, and leases end
 * independently of one another. A worker that ends few at a time never gets one.
 */
export class Beside {
  readonly link: Link;
  readonly #clock: Clock;
  #triedAt = -Infinity;

  constructor(link: Link, clock: Clock) {
    this.link = link;
    this.#clock = clock;
  }

  /** Opened without anybody waiting for it: a server may refuse it, or never answer. */
  isWorth(leases: number): boolean {
    if (leases < WORTH_A_STEP || this.link.isOpen) return leases >= WORTH_A_STEP;
    if (this.#clock.monotonic() - this.#triedAt < AGAIN_MS) return false;
    this.#triedAt = this.#clock.monotonic();
    this.link.open().catch(() => undefined);
    return false;
  }
}
