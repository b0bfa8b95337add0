import { type Duration, parseDuration } from "../domain/duration.ts";
import { LeaseLost, Stopping } from "../domain/errors.ts";
import { describeFailure } from "../domain/failure.ts";
import { backoffMs, type RetryPolicy } from "../domain/retry.ts";
import { encodePayload } from "../domain/payload.ts";
import type { Ending, Grant } from "../engine/port.ts";
import { WorkItem } from "../worker/handler.ts";
import { LeaseKeeper } from "../worker/lease-keeper.ts";
import { type HeldLease, Run } from "../worker/run.ts";
import { settleUntilCertain } from "../worker/settle.ts";
import { atMost, Patience } from "./locks/patience.ts";
import type { Shared } from "./shared.ts";

export interface TakeOptions {
  /** How many items at most, each of another key. Default 1. */
  readonly max?: number;
  /** Instead of the queue's. */
  readonly lease?: Duration;
  /** How long to wait for the first: a time, `"0s"` to take only what is ready, or `"forever"`, the default. */
  readonly wait?: Duration;
  /** Gives up waiting: the answer is what there is, most likely nothing. */
  readonly signal?: AbortSignal;
  /** Shown by inspection. Default: host and process. */
  readonly name?: string;
}

/**
 * An item in your hands: its lease is renewed until you settle it with `done`, `retry`, `dead` or `release`. Each of
 * them throws `LeaseLost` when the item was no longer yours, and then has changed nothing. If it was cancelled
 * meanwhile the lease's signal says so, and everything but `done` ends it as cancelled. `await using` releases what was
 * not settled.
 */
export interface TakenItem<T> extends AsyncDisposable {
  readonly item: WorkItem<T>;
  readonly lease: HeldLease;
  done(result?: unknown): Promise<void>;
  /**
   * Another attempt, after the time given or the queue's back-off. This does not look at the queue's number of
   * attempts: that is yours to do.
   */
  retry(reason: unknown, options?: { readonly after?: Duration }): Promise<void>;
  dead(reason: unknown): Promise<void>;
  /** Gives it back in its place, without counting the attempt. */
  release(): Promise<void>;
}

export interface TakeRequest {
  readonly queue: string;
  readonly worker: string;
  readonly max: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly patienceMs: number;
  readonly retry: RetryPolicy;
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
    this.#keeper = new LeaseKeeper(shared.engine, shared.clock, leaseMs, undefined, shared.emit);
  }

  async take<T>(request: TakeRequest): Promise<readonly TakenItem<T>[]> {
    const { engine, clock } = this.#shared;
    const { queue, worker, max, leaseMs, patienceMs } = request;
    // A claim that is not to wait at all gets nothing: an engine is asked, and called off when it should have answered.
    const isTry = request.waitMs === 0 || request.signal?.aborted === true;
    using patience = isTry ? new Patience(clock, this.#tryMs) : new Patience(clock, request.waitMs, request.signal);
    const grants = await engine.claim({ queue, worker, max, leaseMs, patienceMs, signal: patience.signal });
    return grants.map((grant) => this.#begin<T>(grant, request)).filter(({ lease }) => lease.leftMs > 0);
  }

  /**
   * The connection closes. What is not settled within the grace, nor after its signal fired, is left alone: somebody
   * may be at work on it, and its key is free when its lease has run out.
   */
  async stop({ grace = "20s" }: { readonly grace?: Duration }): Promise<void> {
    await this.#untilQuiet(parseDuration(grace, "grace"));
    for (const { run } of this.#taken) run.abort(new Stopping());
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

  /** A lease that ran out on its way is left alone: it is not ours. */
  #begin<T>(grant: Grant, { leaseMs, retry }: TakeRequest): TakenItem<T> {
    const run = new Run(grant, leaseMs, this.#shared.clock, (changed) => this.#keeper.noteProgress(changed));
    const taken = new Taken<T>(this.#shared, run, retry, {
      end: () => this.#end(taken),
      roundTrip: (ms) => this.#noteRoundTrip(ms),
    });
    if (run.leftMs <= 0) return taken;
    this.#keeper.add(run);
    this.#taken.add(taken);
    this.#shared.workers.add(this);
    this.#shared.emit({ type: "started", item: grant.item, fence: run.fence });
    return taken;
  }

  #end(taken: Taken<unknown>): void {
    this.#keeper.remove(taken.run);
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
  readonly run: Run;
  readonly #shared: Shared;
  readonly #retry: RetryPolicy;
  readonly #on: Listener;
  #settled = false;

  constructor(shared: Shared, run: Run, retry: RetryPolicy, on: Listener) {
    this.item = new WorkItem<T>(run.grant.item);
    this.run = run;
    this.#shared = shared;
    this.#retry = retry;
    this.#on = on;
  }

  get lease(): HeldLease {
    return this.run;
  }

  async done(result?: unknown): Promise<void> {
    await this.#settle(result === undefined ? { type: "done" } : { type: "done", result: encodePayload(result) });
  }

  async retry(reason: unknown, options: { readonly after?: Duration } = {}): Promise<void> {
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
    if (this.#settled || this.run.lost) return this.#on.end();
    try {
      await this.release();
    } catch (error) {
      this.#shared.emit({ type: "trouble", doing: "giving an item back", error });
    }
  }

  async #settle(wanted: Ending): Promise<void> {
    const { queue, key, fence } = this.run;
    // As with a worker: whoever gives up an item that was cancelled meanwhile is not asked to try again.
    const ending: Ending = this.run.cancelled && wanted.type !== "done" ? { type: "cancelled" } : wanted;
    if (this.#settled) throw new LeaseLost(queue, key, fence, "the item was settled already");
    this.#settled = true;
    // Not certain any more: to settle now could end the work of another holder.
    if (this.run.lost || this.run.leftMs <= 0) {
      this.#on.end();
      this.run.lose("its time ran out before it was settled");
      throw new LeaseLost(queue, key, fence, "its time ran out before it was settled");
    }
    // Not renewed from here on: a renewal that overtakes the settlement would look like a loss.
    this.#on.end();
    const { clock } = this.#shared;
    const began = clock.monotonic();
    const [result] = await settleUntilCertain(this.#shared, [
      { run: this.run, settlement: { lease: this.run.grant.lease, ending } },
    ]);
    this.#on.roundTrip(clock.monotonic() - began);
    if (result !== "settled") throw new LeaseLost(queue, key, fence, "the store no longer has it");
  }
}
