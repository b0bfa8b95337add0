import { type Clock, type Instant, instant } from "../domain/clock.ts";
import { InvalidInput, LeaseLost } from "../domain/errors.ts";
import { leaseLeftMs, leaseMarginMs } from "../domain/lease.ts";
import type { Grant } from "../engine/port.ts";
import type { Run } from "./run.ts";

/** What a handler gets beside the item. */
export interface HeldLease {
  readonly queue: string;
  readonly key: string;
  /** Greater than every earlier fence of this key. Store it with what you write, and refuse writes under a lower one. */
  readonly fence: number;
  /** Fires when the lease is lost, the item is cancelled, the handler's time is up or the worker stops. */
  readonly signal: AbortSignal;
  /** Milliseconds for which the lease is certain without a further renewal. */
  readonly leftMs: number;
  /** Throws `LeaseLost`, or the reason of the signal, unless the lease is certain at this moment. */
  check(): void;
  /** From 0 to 1; shown by inspection, sent with a renewal. Anything else throws `InvalidInput`. */
  progress(share: number): void;
}

/** Shares that are added up, as ten times 0.1, come out a little beside the truth, and that is no mistake of the handler's. */
const ROUNDING = 1e-9;

/**
 * One item in work.
 *
 *   running ──handler ends──▶ ended          (settled by the worker, if the lease is still certain)
 *      └────deadline, or the store says so──▶ lost   (signal fires; whatever the handler returns is discarded)
 *
 * A cancel, a timeout or a stop only fires the signal: the run goes on until its handler returns.
 */
export class HeldItem implements HeldLease {
  readonly grant: Grant;
  /** By the monotonic clock: when its handler began. */
  startedAt: number;
  readonly leaseMs: number;
  /** Its handler was called, or it was given to whoever takes by hand. */
  begun = false;
  /** A stall was told in which it was held. */
  stalled = false;
  /** By the monotonic clock. */
  renewDueAt = 0;
  /** Its lease is renewed when that is due. */
  isRenewed = false;
  lost = false;
  cancelled = false;
  timedOut = false;
  progressShare: number | undefined;
  /** The run that it belongs to. Undefined: it is taken by hand, and alone under its lease. */
  readonly run: Run | undefined;
  #since: Instant;
  #marginMs: number;
  /** Made when first asked for: most handlers never look, and a controller costs more than the rest of a run. */
  #controller: AbortController | undefined;
  #reason: Error | undefined;
  readonly #clock: Clock;
  readonly #onProgress: (held: HeldItem) => void;

  constructor(grant: Grant, leaseMs: number, clock: Clock, onProgress: (held: HeldItem) => void, run?: Run) {
    this.grant = grant;
    this.run = run;
    this.leaseMs = leaseMs;
    this.startedAt = clock.monotonic();
    this.#since = grant.lease.since;
    this.#marginMs = leaseMarginMs(leaseMs);
    this.#clock = clock;
    this.#onProgress = onProgress;
  }

  #isLossTold = false;

  get queue(): string {
    return this.grant.lease.queue;
  }

  get key(): string {
    return this.grant.lease.key;
  }

  get fence(): number {
    return this.grant.lease.fence;
  }

  /** Read before the lease was asked for, or last renewed. */
  get since(): Instant {
    return this.#since;
  }

  begin(): void {
    this.begun = true;
    this.startedAt = this.#clock.monotonic();
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Its signal has fired, whoever has asked for it. */
  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  get leftMs(): number {
    return this.lost ? 0 : Math.max(0, leaseLeftMs(this.#clock, this.#since, this.leaseMs, this.#marginMs));
  }

  /** By the monotonic clock; the wall clock may make it earlier, never later. */
  get deadline(): number {
    return this.#since.monotonic + this.leaseMs - this.#marginMs;
  }

  check(): void {
    if (!this.lost && this.leftMs <= 0) this.lose("its time ran out before it was renewed");
    if (this.#reason !== undefined) throw this.#reason;
  }

  progress(share: number): void {
    // NaN, which is what 0 of 0 steps is, fails the comparison too.
    const isShare = typeof share === "number" && share >= 0 && share <= 1 + ROUNDING;
    if (!isShare) throw new InvalidInput("progress", share, "a number from 0 to 1");
    this.progressShare = Math.min(1, share);
    this.#onProgress(this);
  }

  /** The store moved the deadline. A slow way to the store asks for a larger margin. */
  renewed(since: Instant): void {
    // Replies may overtake one another: an old one does not take back what a newer one gave.
    if (since.monotonic < this.#since.monotonic) return;
    const roundTripMs = instant(this.#clock).monotonic - since.monotonic;
    this.#since = since;
    this.#marginMs = leaseMarginMs(this.leaseMs, roundTripMs);
  }

  lose(why: string): void {
    if (this.lost) return;
    this.lost = true;
    this.abort(new LeaseLost(this.queue, this.key, this.fence, why));
  }

  /** True for the first who asks: several may notice that the lease is lost, and one of them tells. */
  takeLoss(): boolean {
    const isFirst = !this.#isLossTold;
    this.#isLossTold = true;
    return isFirst;
  }

  /** The first reason stays, except that a lost lease is always told. */
  abort(reason: Error): void {
    if (this.#reason === undefined || reason instanceof LeaseLost) this.#reason = reason;
    this.#controller?.abort(this.#reason);
  }
}

/** Why a run is lost whose handler was not begun. */
export function whyNotBegun({ stalled }: HeldItem): "expired" | "late" {
  return stalled ? "expired" : "late";
}
