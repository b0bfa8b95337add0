import type { ClaimRequest, Grant } from "../../engine/port.ts";
import type { Claimant } from "./lease-starts.ts";
import type { Held } from "./own-leases.ts";

/** A key that is being started for a claim, or was. */
export interface Coming {
  readonly level: number;
  /** Its level has waited too long. */
  readonly isOutOfTurn: boolean;
  /** Submitted here, and started by the same write: what is more urgent, or was ready before, goes before it. */
  readonly isSubmitted: boolean;
  /** By the monotonic clock. */
  readonly since: number;
  /** Undefined while it is being started. */
  held: Held | undefined;
  /** The queue was paused meanwhile. */
  isPaused: boolean;
}

/**
 * A claim that asks for long runs is answered with fewer keys, but with so many in any case. To read and write all that more of them carry would take
 * a good part of the time in which their runs may go on.
 */
const MOST_ITEMS = 1_024;
const FEWEST_KEYS = 16;

/** A call that waits for keys. */
export class WaitingClaim {
  readonly request: ClaimRequest;
  readonly claimant: Claimant;
  readonly #most: number;
  /** When it gives up, by the monotonic clock; infinity: that is not known. */
  readonly until: number;
  readonly resolve: (grants: readonly Grant[]) => void;
  readonly reject: (error: Error) => void;
  /** In the order in which they came. */
  coming: Coming[] = [];
  onEnd: () => void = () => undefined;
  /** It was answered, or given up. */
  isOver = false;

  constructor(
    request: ClaimRequest,
    now: number,
    resolve: (grants: readonly Grant[]) => void,
    reject: (error: Error) => void,
  ) {
    const { worker, leaseMs, items: mostItems = 1, waitMs } = request;
    this.request = request;
    this.claimant = { worker, leaseMs, mostItems };
    this.#most = Math.min(request.max, Math.max(FEWEST_KEYS, Math.floor(MOST_ITEMS / mostItems)));
    this.until = waitMs === undefined ? Number.POSITIVE_INFINITY : now + waitMs;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Slots that nothing on its way will fill. */
  get open(): number {
    return this.#most - this.coming.length;
  }

  /** Slots for something of this level that was ready before. */
  openAt(level: number): number {
    let { open } = this;
    for (const { isSubmitted, held, level: other } of this.coming)
      if (isSubmitted && held === undefined && other > level) open += 1;
    return open;
  }

  /** It will not come, or is not wanted here. */
  forget(coming: Coming): void {
    this.coming = this.coming.filter((other) => other !== coming);
  }
}
