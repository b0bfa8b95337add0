import type { Clock } from "../../domain/clock.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { bigints } from "./arrays.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer, optionalInteger } from "./rows.ts";

/** A claim that waits for work. */
export interface WaitingClaim {
  readonly request: ClaimRequest;
  readonly resolve: (grants: readonly Grant[]) => void;
  readonly reject: (error: unknown) => void;
  /** A look for it is under way: whatever comes of that is its answer. */
  looking: boolean;
}

/**
 * Looks for work begin where the last ones found some, so that nobody walks over places that were taken and not yet vacuumed. A key that
 * became ready in a slow transaction may stand before that, so every so often a look begins at the beginning.
 */
const WHOLE_LOOK_EVERY_MS = 1_000;

/** Those who wait for work of one queue, and what is known about where it is. */
export class QueueClaims {
  readonly queue: DeclaredQueue;
  readonly #clock: Clock;
  readonly #waiting: WaitingClaim[] = [];
  /** It was said in the store that somebody here sleeps. */
  asleep = false;
  /** There may be something now. */
  look = false;
  #strict = 0;
  #bounds: number[];
  #lows: readonly (number | undefined)[] = [];
  #wholeAt = -Infinity;
  #whole = true;

  constructor(queue: DeclaredQueue, clock: Clock) {
    this.queue = queue;
    this.#clock = clock;
    this.#bounds = queue.levels.map(() => 0);
  }

  get size(): number {
    return this.#waiting.length;
  }

  get first(): WaitingClaim | undefined {
    return this.#waiting[0];
  }

  add(claim: WaitingClaim): void {
    this.#waiting.push(claim);
    this.look = true;
  }

  remove(claim: WaitingClaim): boolean {
    const index = this.#waiting.indexOf(claim);
    if (index === -1) return false;
    this.#waiting.splice(index, 1);
    return true;
  }

  all(): readonly WaitingClaim[] {
    return [...this.#waiting];
  }

  /** The arguments of a step that say who asks for how much. */
  arguments({ request }: WaitingClaim): readonly unknown[] {
    const { worker, max, leaseMs, patienceMs } = request;
    const now = this.#clock.monotonic();
    this.#whole = now - this.#wholeAt >= WHOLE_LOOK_EVERY_MS;
    if (this.#whole) this.#wholeAt = now;
    const patience = Math.min(Math.ceil(patienceMs), Number.MAX_SAFE_INTEGER);
    const bounds = bigints(this.#whole ? this.#bounds.map(() => 0) : this.#bounds);
    const lastSleeper = this.asleep && this.size === 1;
    return [this.queue.id, worker, max, Math.ceil(leaseMs), patience, this.#strict, bounds, !this.asleep, lastSleeper];
  }

  /** From the rows that tell what the next claim should know. Milliseconds until something is due; -1: nothing will be; -2: not asked. */
  learn(rows: readonly Row[]): number {
    const [first] = rows;
    if (first === undefined) return -2;
    this.#strict = integer(first, 3);
    if (this.#whole) {
      const before = this.#lows;
      this.#lows = rows.map((row) => optionalInteger(row, 4));
      // What is lower than both was seen twice to be gone.
      this.#bounds = this.#bounds.map((bound, level) => {
        const low = this.#lows[level];
        const earlier = before[level];
        return low === undefined || earlier === undefined ? bound : Math.max(bound, Math.min(low, earlier) - 1);
      });
    }
    return integer(first, 1);
  }

  /** Fewer came than were asked for, by a look that did not begin at the beginning: it should. True: look once more. */
  lookWhole(): boolean {
    if (this.#whole || this.#bounds.every((bound) => bound === 0)) return false;
    this.#wholeAt = -Infinity;
    return true;
  }
}
