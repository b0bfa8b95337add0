import type { Clock } from "../domain/clock.ts";
import { PassingSet } from "../domain/passing.ts";
import type { RetryPolicy } from "../domain/retry.ts";
import { Stopping } from "../domain/errors.ts";
import type { Ending, Engine, Grant, Lease } from "../engine/port.ts";
import { chooseEnding, endingOfExhausted, type HandlerEnd } from "./ending.ts";
import type { WorkerEvent } from "./events.ts";
import { type Handler, WorkItem } from "./handler.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Run } from "./run.ts";
import { type Settled, settleUntilCertain } from "./settle.ts";

export interface WorkerParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: () => number;
  readonly emit: (event: WorkerEvent) => void;
}

export interface WorkerSettings {
  readonly queue: string;
  readonly name: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly patienceMs: number;
  readonly retry: RetryPolicy;
  readonly resultLimit: number;
  readonly timeoutMs: number | undefined;
}

export interface StopReport {
  /** Handlers that ended by themselves within the grace period. */
  readonly finished: number;
  /** Items that went back, without a counted attempt. */
  readonly released: number;
  /** Handlers that ignored their signal. Their leases run out by themselves. */
  readonly abandoned: number;
}

/** After its signal fired, a handler has this long to come to an end: the 5 s that the command gives its child, and a little. */
const ABORT_WAIT_MS = 6_000;
/**
 * So many ended runs are settled at once, while the others of the same turn still run, and the store works meanwhile.
 * Fewer would not pay: a step of the store costs about as much as thirty items in it.
 */
const SETTLE_EARLY = 128;
/** A second claim may be under way for slots that came free after the first was sent; more would only be smaller. */
const MOST_CLAIMS = 2;
/** First wait after the store refused a claim; doubles up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Takes leases as it has free slots, runs the handler, renews, settles.
 *
 *   working ──stop()──▶ draining ──grace is over──▶ aborting ──▶ stopped
 *
 * Everything that happened within one turn of the event loop is settled, and asked for anew, together.
 */
export class WorkerLoop {
  readonly #parts: WorkerParts;
  readonly #settings: WorkerSettings;
  readonly #handler: Handler<never>;
  readonly #keeper: LeaseKeeper;
  readonly #runs = new PassingSet<Run>();
  readonly #claiming = new AbortController();
  readonly #pending = new PassingSet<Promise<void>>();
  #toSettle: Settled[] = [];
  #turnScheduled = false;
  #settling = 0;
  #claimsOut = 0;
  /** Slots that claims under way may fill. */
  #asked = 0;
  #paused = false;
  #pauseMs = FIRST_PAUSE_MS;
  #stopping = false;
  #finished = 0;
  #released = 0;
  #onChange: (() => void) | undefined;
  #quietCheck: (() => void) | undefined;

  constructor(parts: WorkerParts, settings: WorkerSettings, handler: Handler<never>) {
    this.#parts = parts;
    this.#settings = settings;
    this.#handler = handler;
    this.#keeper = new LeaseKeeper(parts.engine, parts.clock, settings.leaseMs, settings.timeoutMs, parts.emit);
  }

  start(): void {
    this.#scheduleTurn();
  }

  get running(): number {
    return this.#runs.size;
  }

  /** Nothing runs and nothing waits to be settled; it may be asking for more. */
  get idle(): boolean {
    return this.#runs.size === 0 && this.#toSettle.length === 0 && this.#settling === 0;
  }

  /** Called whenever a run has ended and was settled. */
  set onChange(listener: (() => void) | undefined) {
    this.#onChange = listener;
  }

  /** Stops claiming, then waits for what runs; `hurry` ends the grace period. */
  async stop(graceMs: number, hurry: AbortSignal): Promise<StopReport> {
    this.#stopping = true;
    const finishedBefore = this.#finished;
    this.#claiming.abort();
    await this.#untilQuiet(graceMs, hurry);
    const finished = this.#finished - finishedBefore;
    for (const run of this.#runs) run.abort(new Stopping());
    await this.#untilQuiet(ABORT_WAIT_MS, undefined);
    this.#keeper.stop();
    return { finished, released: this.#released, abandoned: this.#runs.size };
  }

  #scheduleTurn(): void {
    if (this.#turnScheduled) return;
    this.#turnScheduled = true;
    setImmediate(() => {
      this.#turnScheduled = false;
      this.#turn();
    });
  }

  /** Asked for and settled together: an engine that batches does both in one step, and a freed key can come right back. */
  #turn(): void {
    const free = this.#settings.concurrency - this.#runs.size - this.#asked;
    if (free > 0 && !this.#paused && !this.#stopping && this.#mayClaim(free)) this.#track(this.#claim(free));
    if (this.#toSettle.length > 0) {
      const settled = this.#toSettle;
      this.#toSettle = [];
      this.#track(this.#settle(settled));
    }
  }

  /** One claim at a time asks for what is free; a second one only for a good share of the slots. */
  #mayClaim(free: number): boolean {
    return this.#claimsOut === 0 || (this.#claimsOut < MOST_CLAIMS && free >= SETTLE_EARLY);
  }

  readonly #lost = (lease: Lease): void => this.#keeper.doubt(lease);

  async #claim(max: number): Promise<void> {
    const { engine, clock, emit } = this.#parts;
    const { queue, name: worker, leaseMs, patienceMs, retry } = this.#settings;
    const once = retry.attempts === 1;
    this.#claimsOut += 1;
    let asked = max;
    this.#asked += asked;
    try {
      const { signal } = this.#claiming;
      const grants = await engine.claim({ queue, worker, max, leaseMs, patienceMs, signal, lost: this.#lost, once });
      this.#pauseMs = FIRST_PAUSE_MS;
      for (const grant of grants) {
        // One by one: a handler that ends at once may lead to the next claim while later grants have yet to begin.
        this.#asked -= 1;
        asked -= 1;
        this.#begin(grant);
      }
    } catch (error) {
      if (this.#stopping) return;
      emit({ type: "trouble", doing: "asking for work", error });
      this.#paused = true;
      clock.setTimer(this.#pauseMs * (0.5 + this.#parts.random() / 2), () => {
        this.#paused = false;
        this.#scheduleTurn();
      });
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    } finally {
      this.#asked -= asked;
      this.#claimsOut -= 1;
      this.#scheduleTurn();
    }
  }

  #begin(grant: Grant): void {
    const { clock, emit } = this.#parts;
    const run = new Run(grant, this.#settings.leaseMs, clock, (changed) => this.#keeper.noteProgress(changed));
    // The reply was so long on its way, or this process stood still for so long, that the lease may be over.
    if (run.leftMs <= 0) {
      run.lose("its time ran out before the work began");
      return emit({ type: "lost", item: grant.item, fence: run.fence, why: "expired" });
    }
    // The signal to stop raced with this grant: it goes back untouched.
    if (this.#stopping) return this.#finish(run, { type: "release" });
    const { attempt } = grant.item;
    if (attempt > this.#settings.retry.attempts) {
      return this.#finish(run, endingOfExhausted(attempt, this.#settings.retry.attempts));
    }
    this.#runs.add(run);
    this.#keeper.add(run);
    emit({ type: "started", item: grant.item, fence: run.fence });
    let returned: unknown;
    let later: boolean;
    try {
      // The handler's payload type is its own affair; the item carries whatever was submitted.
      returned = this.#handler(new WorkItem<never>(grant.item), run);
      later = isThenable(returned);
    } catch (threw) {
      return this.#end(run, { threw });
    }
    if (!later) return this.#end(run, { returned });
    // Somebody's own thenable may throw, or answer twice; a promise around it does neither.
    Promise.resolve(returned).then(
      (value) => this.#end(run, { returned: value }),
      (threw: unknown) => this.#end(run, { threw }),
    );
  }

  #end(run: Run, end: HandlerEnd): void {
    this.#runs.delete(run);
    this.#keeper.remove(run);
    this.#finished += 1;
    if (run.lost || run.leftMs <= 0) {
      // Not certain any more: to settle now could end the work of another holder.
      run.lose("its time ran out before the handler ended");
      this.#parts.emit({ type: "lost", item: run.grant.item, fence: run.fence, why: "discarded" });
      this.#onChange?.();
      this.#quietCheck?.();
      return this.#scheduleTurn();
    }
    const ending = chooseEnding(run, end, {
      retry: this.#settings.retry,
      resultLimit: this.#settings.resultLimit,
      stopping: this.#stopping,
      random: this.#parts.random,
    });
    this.#finish(run, ending);
  }

  #finish(run: Run, ending: Ending): void {
    this.#toSettle.push({ run, settlement: { lease: run.grant.lease, ending } });
    if (this.#toSettle.length >= SETTLE_EARLY) this.#turn();
    else this.#scheduleTurn();
  }

  async #settle(settled: readonly Settled[]): Promise<void> {
    this.#settling += 1;
    const results = await settleUntilCertain(this.#parts, settled);
    this.#settling -= 1;
    for (const [index, { run, settlement }] of settled.entries()) {
      if (settlement.ending.type === "release") this.#released += 1;
      this.#parts.emit(eventOf(run, settlement.ending, results[index] === "settled"));
    }
    this.#onChange?.();
  }

  #track(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => {
      this.#pending.delete(work);
      this.#quietCheck?.();
    });
  }

  /** Resolves when nothing is left to wait for, when the time is over, or when somebody is in a hurry. */
  #untilQuiet(waitMs: number, hurry: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        timer.cancel();
        hurry?.removeEventListener("abort", finish);
        this.#quietCheck = undefined;
        resolve();
      };
      const timer = this.#parts.clock.setTimer(waitMs, finish);
      this.#quietCheck = () => {
        if (this.idle && this.#pending.size === 0) finish();
      };
      hurry?.addEventListener("abort", finish);
      if (hurry?.aborted === true) finish();
      else this.#quietCheck();
    });
  }
}

function eventOf(run: Run, ending: Ending, settled: boolean): WorkerEvent {
  const { item } = run.grant;
  if (!settled) return { type: "lost", item, fence: run.fence, why: "discarded" };
  switch (ending.type) {
    case "done":
      return { type: "done", item };
    case "retry":
      return { type: "retry", item, failure: ending.failure, delayMs: ending.delayMs };
    case "dead":
      return { type: "dead", item, failure: ending.failure };
    case "cancelled":
      return { type: "cancelled", item };
    case "release":
      return { type: "released", item };
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
