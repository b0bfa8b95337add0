import { type Duration, parseDuration } from "../domain/duration.ts";
import { LeaseLost, Stopping } from "../domain/errors.ts";
import { describeFailure } from "../domain/failure.ts";
import { checkOptions, type OptionNames } from "../domain/options.ts";
import { backoffMs, type RetryPolicy } from "../domain/retry.ts";
import type { Ending } from "../engine/port.ts";
import { doneWith } from "../worker/ending.ts";
import { tellMissing } from "../worker/events.ts";
import { GrantedItem, type WorkItem } from "../worker/handler.ts";
import { LeaseKeeper } from "../worker/lease-keeper.ts";
import { type HeldLease, HeldItem, whyNotBegun } from "../worker/held-item.ts";
import { settleUntilCertain } from "../worker/settle.ts";
import { atMost, Patience } from "./locks/patience.ts";
import type { Shared } from "./shared.ts";

export interface TakeOptions {
  /** How many items at most, each of another key. Default 1. */
  readonly max?: number | undefined;
  /** Instead of the queue's. */
  readonly lease?: Duration | undefined;
  /** How long to wait for the first: a time, `"0s"` to take only what is ready, or `"forever"`, the default. */
  readonly wait?: Duration | undefined;
  /** Gives up waiting: the answer is what there is, most likely nothing. */
  readonly signal?: AbortSignal | undefined;
  /** Shown by inspection. Default: host and process. */
  readonly name?: string | undefined;
}

export const TAKE_OPTIONS: OptionNames<TakeOptions> = { max: true, lease: true, wait: true, signal: true, name: true };

/**
 * An item in your hands: its lease is renewed until you settle it with `done`, `retry`, `dead` or `release`. Each of
 * them throws `LeaseLost` when the item was no longer yours, and then has changed nothing. If it was cancelled
 * meanwhile the lease's signal says so, and everything but `done` ends it as cancelled. `await using` releases what was
 * not settled.
 */
export interface TakenItem<T> extends AsyncDisposable {
  readonly item: WorkItem<T>;
  readonly lease: HeldLease;
  /** A result that cannot be kept (larger than `limits.payload`, or nothing that JSON can carry) is told by an event, and in the outcome. */
  done(result?: unknown): Promise<void>;
  /**
   * Another attempt, after the time given or the queue's back-off. This does not look at the queue's number of
   * attempts: that is yours to do.
   */
  retry(reason: unknown, options?: RetryItemOptions): Promise<void>;
  dead(reason: unknown): Promise<void>;
  /** Gives it back in its place, without counting the attempt. */
  release(): Promise<void>;
}

export interface RetryItemOptions {
  /** Instead of the queue's back-off. */
  readonly after?: Duration | undefined;
}

const RETRY_ITEM_OPTIONS: OptionNames<RetryItemOptions> = { after: true };

export interface TakeRequest {
  readonly queue: string;
  readonly worker: string;
  readonly max: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly patienceMs: number;
  readonly retry: RetryPolicy;
  readonly resultLimit: number;
  readonly signal: AbortSignal | undefined;
}

/** A store has so many of its usual round trips to say that nothing is ready, within these bounds. */
const TRY_ROUND_TRIPS = 5;
const SHORTEST_TRY_MS = 1;
const LONGEST_TRY_MS = 200;
/** Before any round trip was seen. */
const FIRST_ROUND_TRIP_MS = 10;
/** The weight of the newest round trip. */
const NEWEST_SHARE = 1 / 8;

/** After its signal fired, whoever has an item has so long to settle it. */
const ABORT_WAIT_MS = 1_000;

/** Takes items by hand, without a worker, and keeps their leases. One per queue object and lease. */
export class Taker {
  readonly #shared: Shared;
  readonly #keeper: LeaseKeeper;
  readonly #taken = new Set<Taken<unknown>>();
  #roundTripMs = FIRST_ROUND_TRIP_MS;
  #quiet: PromiseWithResolvers<void> | undefined;

  constructor(shared: Shared, leaseMs: number) {
    this.#shared = shared;
    this.#keeper = new LeaseKeeper(shared, leaseMs, undefined);
  }

  async take<T>(request: TakeRequest): Promise<readonly TakenItem<T>[]> {
    const { engine, clock } = this.#shared;
    const { queue, worker, max, leaseMs, patienceMs } = request;
    // A claim that is not to wait at all gets nothing: an engine is asked, and called off when it should have answered.
    const isTry = request.waitMs === 0 || request.signal?.aborted === true;
    const waitMs = isTry ? this.#tryMs : request.waitMs;
    using patience = isTry ? new Patience(clock, waitMs) : new Patience(clock, waitMs, request.signal);
    const grants = await engine.claim({ queue, worker, max, leaseMs, patienceMs, waitMs, signal: patience.signal });
    if (grants.length > 0) this.#shared.outages.worked("asking for work");
    const heldItems = grants.map(
      (grant) => new HeldItem(grant, leaseMs, clock, (changed) => this.#keeper.noteProgress(changed)),
    );
    this.#keeper.add(...heldItems);
    const late = heldItems.filter((held) => held.leftMs <= 0);
    if (late.length > 0) void this.#giveBack(late);
    return heldItems.filter((held) => !late.includes(held)).map((held) => this.#begin<T>(held, request));
  }

  /**
   * The connection closes. What is not settled within the grace, nor after its signal fired, is left alone: somebody
   * may be at work on it, and its key is free when its lease has run out.
   */
  async stop({ grace = "20s" }: { readonly grace?: Duration | undefined }): Promise<void> {
    await this.#untilQuiet(parseDuration(grace, "grace"));
    for (const { held } of this.#taken) held.abort(new Stopping());
    await this.#untilQuiet(ABORT_WAIT_MS);
    this.#keeper.stop();
    this.#shared.workers.delete(this);
  }

  async #untilQuiet(waitMs: number): Promise<void> {
    if (this.#taken.size === 0) return;
    this.#quiet = Promise.withResolvers();
    await atMost(this.#shared.clock, waitMs, this.#quiet.promise);
  }

  get #tryMs(): number {
    return Math.min(Math.max(this.#roundTripMs * TRY_ROUND_TRIPS, SHORTEST_TRY_MS), LONGEST_TRY_MS);
  }

  #noteRoundTrip(ms: number): void {
    this.#roundTripMs += (ms - this.#roundTripMs) * NEWEST_SHARE;
  }

  /** What ran out on its way is not handed out. In the store a lease lasts a little longer: if it is still ours, no attempt is counted. */
  async #giveBack(late: readonly HeldItem[]): Promise<void> {
    for (const held of late) {
      this.#keeper.remove(held);
      held.lose("its time ran out before it was handed out");
    }
    const ending: Ending = { type: "release" };
    const results = await settleUntilCertain(
      this.#shared,
      late.map((held) => ({ held, settlement: { lease: held.grant.lease, ending } })),
    );
    for (const [index, held] of late.entries()) {
      const { item } = held.grant;
      if (results[index] === "settled") this.#shared.emit({ type: "released", item });
      else this.#shared.emit({ type: "lost", item, fence: held.fence, why: whyNotBegun(held) });
    }
  }

  #begin<T>(held: HeldItem, { retry, resultLimit }: TakeRequest): TakenItem<T> {
    const on = { end: () => this.#end(taken), roundTrip: (ms: number) => this.#noteRoundTrip(ms) };
    const taken: Taken<T> = new Taken<T>(this.#shared, held, { retry, resultLimit }, on);
    this.#keeper.began(held);
    this.#taken.add(taken);
    this.#shared.workers.add(this);
    this.#shared.emit({ type: "started", item: held.grant.item, fence: held.fence });
    return taken;
  }

  #end(taken: Taken<unknown>): void {
    this.#keeper.remove(taken.held);
    this.#taken.delete(taken);
    if (this.#taken.size > 0) return;
    this.#shared.workers.delete(this);
    this.#quiet?.resolve();
  }
}

interface Listener {
  readonly end: () => void;
  readonly roundTrip: (ms: number) => void;
}

/**
 *   taken ──done, retry, dead, release──▶ settled
 *     └──its time runs out, or the store says so──▶ lost (the signal fires; settling throws)
 */
class Taken<T> implements TakenItem<T> {
  readonly item: WorkItem<T>;
  readonly held: HeldItem;
  readonly #shared: Shared;
  readonly #retry: RetryPolicy;
  readonly #resultLimit: number;
  readonly #on: Listener;
  #settled = false;

  constructor(shared: Shared, held: HeldItem, terms: Pick<TakeRequest, "retry" | "resultLimit">, on: Listener) {
    this.item = new GrantedItem<T>(held.grant.item);
    this.held = held;
    this.#shared = shared;
    this.#retry = terms.retry;
    this.#resultLimit = terms.resultLimit;
    this.#on = on;
  }

  get lease(): HeldLease {
    return this.held;
  }

  async done(result?: unknown): Promise<void> {
    await this.#settle(doneWith(result, this.#resultLimit));
  }

  async retry(reason: unknown, options: RetryItemOptions = {}): Promise<void> {
    checkOptions(options, RETRY_ITEM_OPTIONS);
    const { place } = this.#retry;
    const delayMs =
      options.after === undefined
        ? backoffMs(this.#retry, this.item.attempt, this.#shared.random)
        : parseDuration(options.after, "after");
    await this.#settle({ type: "retry", delayMs, place, failure: describeFailure(reason) });
  }

  async dead(reason: unknown): Promise<void> {
    await this.#settle({ type: "dead", failure: describeFailure(reason) });
  }

  async release(): Promise<void> {
    await this.#settle({ type: "release" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#settled || this.held.lost) return this.#on.end();
    try {
      await this.release();
    } catch (error) {
      this.#shared.outages.failed("giving an item back", error);
    }
  }

  async #settle(wanted: Ending): Promise<void> {
    const { queue, key, fence } = this.held;
    // As with a worker: whoever gives up an item that was cancelled meanwhile is not asked to try again.
    const ending: Ending = this.held.cancelled && wanted.type !== "done" ? { type: "cancelled" } : wanted;
    if (this.#settled) throw new LeaseLost(queue, key, fence, "the item was settled already");
    this.#settled = true;
    // Not certain any more: to settle now could end the work of another holder.
    if (this.held.lost || this.held.leftMs <= 0) {
      this.#on.end();
      this.held.lose("its time ran out before it was settled");
      throw new LeaseLost(queue, key, fence, "its time ran out before it was settled");
    }
    // Not renewed from here on: a renewal that overtakes the settlement would look like a loss.
    this.#on.end();
    const { clock } = this.#shared;
    const began = clock.monotonic();
    const [result] = await settleUntilCertain(this.#shared, [
      { held: this.held, settlement: { lease: this.held.grant.lease, ending } },
    ]);
    this.#on.roundTrip(clock.monotonic() - began);
    if (result !== "settled") throw new LeaseLost(queue, key, fence, "the store no longer has it");
    tellMissing(this.#shared.emit, this.held.grant.item, ending);
  }
}
