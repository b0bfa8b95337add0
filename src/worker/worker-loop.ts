import type { Clock, Timer } from "../domain/clock.ts";
import { PassingSet } from "../domain/passing.ts";
import type { RetryPolicy } from "../domain/retry.ts";
import { Stopping } from "../domain/errors.ts";
import { endsItem } from "../engine/attempts.ts";
import type { Ending, Engine, Grant, Item, Lease, LostListener, NextRequest } from "../engine/port.ts";
import { Claims, type Wanted } from "./claims.ts";
import { chooseEnding, endingOfExhausted, type HandlerEnd } from "./ending.ts";
import { EndingsTold, type StopReport } from "./endings-told.ts";
import type { WorkerEvent } from "./events.ts";
import { GrantedItem, type Handler } from "./handler.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { HeldItem } from "./held-item.ts";
import type { Outages } from "./outages.ts";
import { Pace } from "./pace.ts";
import { KEEP_MS, Prefetch } from "./prefetch.ts";
import { type Finished, Run, RUN_MS } from "./run.ts";
import { type Resident, type Solitude, solitudeOf, SUSPECT_LOSSES } from "./solitude.ts";
import { isCertain, type Settled, settleUntilCertain } from "./settle.ts";
import { type Unbegun, unbegunOf } from "./unbegun.ts";

export interface WorkerParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: () => number;
  readonly emit: (event: WorkerEvent) => void;
  readonly outages: Outages;
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

/** After its signal fired, a handler has this long to come to an end: the 5 s that the command gives its child, and a little. */
const ABORT_WAIT_MS = 6_000;
/**
 * So many ended runs are settled at once, while the others of the same turn still run, and the store works meanwhile.
 * Fewer would not pay: a step of the store costs about as much as thirty items in it.
 */
const SETTLE_EARLY = 128;

/**
 * Takes leases as it has free slots, runs the handler, renews, settles.
 *
 *   working ──stop()──▶ draining ──grace is over──▶ aborting ──▶ stopped
 *
 * Everything that happened within one turn of the event loop is settled, and asked for anew, together. While the handler is quick, a
 * lease covers a run of items (`run.ts`), and keys are claimed before there is a slot for them (`prefetch.ts`).
 */
export class WorkerLoop implements Resident {
  readonly #parts: WorkerParts;
  readonly #settings: WorkerSettings;
  readonly #handler: Handler<never>;
  readonly #keeper: LeaseKeeper;
  readonly #claims: Claims;
  readonly #pace: Pace;
  readonly #prefetch = new Prefetch();
  readonly #solitude: Solitude;
  readonly #unbegun: Unbegun;
  readonly #held = new PassingSet<HeldItem>();
  readonly #pending = new PassingSet<Promise<void>>();
  /** It waits to run alone. */
  #suspect: HeldItem | undefined;
  #alone: HeldItem | undefined;
  #toSettle: Settled[] = [];
  #turnScheduled = false;
  #settling = 0;
  /** Slots of settlements under way that ask for the next run of their key. */
  #nexts = 0;
  readonly #onLost: LostListener;
  #keepTimer: Timer | undefined;
  #onAsked: (() => void) | undefined;
  #stopping = false;
  readonly #endings: EndingsTold;
  #onChange: (() => void) | undefined;
  #quietCheck: (() => void) | undefined;

  /** @param declare makes the queue known to the store again, after somebody deleted it and others use it again */
  constructor(
    parts: WorkerParts,
    settings: WorkerSettings,
    handler: Handler<never>,
    declare: () => Promise<unknown> = () => Promise.resolve(),
  ) {
    const { concurrency: slots, leaseMs, timeoutMs } = settings;
    this.#parts = parts;
    this.#settings = settings;
    this.#handler = handler;
    this.#solitude = solitudeOf(parts.clock);
    this.#unbegun = unbegunOf(parts.engine);
    this.#pace = new Pace({ slots, runMs: RUN_MS, keepMs: KEEP_MS });
    this.#endings = new EndingsTold(parts.emit);
    const reported = (finished: readonly Finished[]): void => this.#endings.finished(finished);
    this.#keeper = new LeaseKeeper({ ...parts, reported }, leaseMs, timeoutMs);
    const granted = (grants: readonly Grant[], wanted: Wanted): void => this.#granted(grants, wanted);
    const lost = (this.#onLost = (lease: Lease): void => this.#keeper.doubt(lease));
    const again = (): void => this.#changed();
    this.#claims = new Claims({ ...parts, granted, lost, again, declare }, settings);
  }

  /** @param onAsked called when the first claim is under way */
  start(onAsked: () => void): void {
    this.#onAsked = onAsked;
    this.#solitude.enter(this);
    this.#scheduleTurn();
  }

  get running(): number {
    return this.#held.size;
  }

  /** Nothing runs or is kept, and nothing waits to be settled; it may be asking for more. */
  get idle(): boolean {
    return this.#hasNoLease && this.#suspect === undefined;
  }

  get isQuiet(): boolean {
    return this.#hasNoLease && this.#claims.isQuiet;
  }

  get #hasNoLease(): boolean {
    const held = this.#held.size + this.#prefetch.size;
    return held === 0 && this.#toSettle.length === 0 && this.#settling === 0;
  }

  /** Called whenever something has ended and was settled. */
  set onChange(listener: (() => void) | undefined) {
    this.#onChange = listener;
  }

  /** Stops claiming, then waits for what runs; `hurry` ends the grace period. */
  async stop(graceMs: number, hurry: AbortSignal): Promise<StopReport> {
    this.#stopping = true;
    this.#endings.count();
    this.#claims.stop();
    this.#giveBack(this.#prefetch.takeAll());
    if (this.#suspect !== undefined) {
      this.#giveBack([this.#suspect]);
      this.#suspect = undefined;
      this.#solitude.over(this);
    }
    await this.#untilQuiet(graceMs, hurry);
    for (const held of this.#held) held.abort(new Stopping());
    await this.#untilQuiet(ABORT_WAIT_MS, undefined);
    this.#keeper.stop();
    this.#keepTimer?.cancel();
    this.#solitude.leave(this);
    return this.#endings.report(this.#held);
  }

  hush(): void {
    this.#claims.callOff();
    this.#giveBack(this.#prefetch.takeAll());
  }

  beginAlone(): void {
    const held = this.#suspect;
    if (held === undefined) return;
    this.#suspect = undefined;
    this.#alone = held;
    this.#work(held);
  }

  goOn(): void {
    this.#scheduleTurn();
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
    this.#ask();
    if (this.#toSettle.length > 0) {
      const settled = this.#toSettle;
      this.#toSettle = [];
      this.#track(this.#settle(settled));
    }
  }

  #ask(): void {
    if (this.#stopping || this.#solitude.isWanted) return;
    const isOnlyTry = this.#settings.retry.attempts === 1;
    const ahead = isOnlyTry ? 0 : this.#pace.ahead;
    const slots = this.#freeSlots;
    const free = slots + ahead;
    // Prefetched keys are asked for by the half, not one by one.
    if (free <= 0 || (slots <= 0 && free < ahead / 2) || !this.#claims.mayAsk(free >= SETTLE_EARLY)) return;
    const items = this.#items;
    const onAsked = (): void => {
      this.#onAsked?.();
      this.#onAsked = undefined;
    };
    this.#track(this.#claims.ask({ max: free, items }, onAsked));
  }

  /** Those that nothing is kept or asked for. */
  get #freeSlots(): number {
    const taken = this.#held.size + this.#prefetch.size + this.#claims.asked + this.#nexts;
    return this.#settings.concurrency - taken;
  }

  /** The most items of a run. */
  get #items(): number {
    const isOnlyTry = this.#settings.retry.attempts === 1;
    return isOnlyTry || this.#parts.engine.runs !== true ? 1 : this.#pace.items;
  }

  #granted(grants: readonly Grant[], wanted: Wanted): void {
    if (grants.length === 0) return;
    this.#pace.answered(wanted, grants);
    this.#take(grants);
  }

  #take(grants: readonly Grant[]): void {
    const all = grants.map((grant) => this.#hold(grant.item, new Run(grant)));
    this.#keeper.add(...all);
    // The signal to stop raced with these, or something is to run alone: they go back untouched. Another that should run alone does, too: if this
    // process dies, only what has begun is to lose an attempt.
    if (this.#stopping || this.#solitude.isWanted) return this.#giveBack(all);
    const suspect = all.find((held) => this.#isSuspect(held));
    if (suspect !== undefined) {
      // To ask gives back what is kept, and may begin the suspect at once.
      this.#prefetch.add(
        all.filter((held) => held !== suspect),
        Infinity,
      );
      this.#suspect = suspect;
      return this.#solitude.ask(this);
    }
    // One by one: a handler that ends at once may stop the worker, or lead to the next claim, while others have yet to begin.
    const slots = this.#settings.concurrency - this.#held.size;
    this.#prefetch.add(all.slice(0, slots), Infinity);
    this.#prefetch.add(all.slice(slots), this.#parts.clock.monotonic() + KEEP_MS);
    this.#fill();
  }

  #hold(item: Item, run: Run): HeldItem {
    const { lease } = run;
    const noteProgress = (changed: HeldItem): void => this.#keeper.noteProgress(changed);
    return new HeldItem({ lease, item }, this.#settings.leaseMs, this.#parts.clock, noteProgress, run);
  }

  #isSuspect({ grant: { item } }: HeldItem): boolean {
    return (item.losses ?? 0) >= SUSPECT_LOSSES && item.attempt <= this.#settings.retry.attempts;
  }

  /** Without those that no handler saw. Where one attempt is all that is allowed, a wrong guess would begin the item twice. */
  #attemptOf(item: Item): number {
    return this.#settings.retry.attempts === 1 ? item.attempt : item.attempt - this.#unbegun.before(item);
  }

  /** Begins what is kept, as slots are free. */
  #fill(): void {
    const { clock } = this.#parts;
    while (this.#prefetch.size > 0) {
      const stale = this.#prefetch.takeStale(clock.monotonic());
      if (stale.length > 0) {
        this.#pace.keptTooLong();
        // A claim that waits would be given the same keys again.
        this.#claims.callOff();
      }
      this.#giveBack(stale);
      const held = this.#held.size < this.#settings.concurrency ? this.#prefetch.take() : undefined;
      if (held === undefined) break;
      this.#work(held);
    }
    if (this.#prefetch.size === 0 || this.#keepTimer !== undefined) return;
    // It may fire too early, when those that it was set for have begun; never too late, as later ones may be kept for longer.
    this.#keepTimer = clock.setTimer(Math.ceil(this.#prefetch.staleAt - clock.monotonic()), () => {
      this.#keepTimer = undefined;
      this.#fill();
    });
  }

  /** Works off a run for as long as its handler ends at once. */
  #work(first: HeldItem): void {
    for (let held: HeldItem | undefined = first; held !== undefined;) {
      const end = this.#begin(held);
      held = end === undefined ? undefined : this.#end(held, end);
    }
  }

  /** Undefined: its handler goes on, or was not begun. */
  #begin(held: HeldItem): HandlerEnd | undefined {
    const { emit } = this.#parts;
    const { item } = held.grant;
    // The reply was so long on its way, or this process stood still for so long, that the lease may be over. In the store it lasts a
    // little longer than here: if it is still ours, it goes back, and no attempt is counted that no handler saw.
    if (held.leftMs <= 0) {
      held.lose("its time ran out before the work began");
      this.#leave(held, { type: "release" });
      return undefined;
    }
    // It waited for its turn, and was cancelled meanwhile.
    if (held.cancelled) {
      this.#leave(held, { type: "cancelled" });
      return undefined;
    }
    if (this.#attemptOf(item) > this.#settings.retry.attempts) {
      this.#leave(held, endingOfExhausted(item.attempt, this.#settings.retry.attempts));
      return undefined;
    }
    this.#held.add(held);
    this.#unbegun.began(item);
    this.#keeper.began(held);
    emit({ type: "started", item, fence: held.fence });
    let returned: unknown;
    let later: boolean;
    try {
      // The handler's payload type is its own affair; the item carries whatever was submitted.
      returned = this.#handler(new GrantedItem<never>(item), held);
      later = isThenable(returned);
    } catch (threw) {
      return { threw };
    }
    if (!later) return { returned };
    this.#keeper.reportInTime(held);
    // Somebody's own thenable may throw, or answer twice; a promise around it does neither.
    Promise.resolve(returned).then(
      (value) => this.#endLater(held, { returned: value }),
      (threw: unknown) => this.#endLater(held, { threw }),
    );
    return undefined;
  }

  #endLater(held: HeldItem, end: HandlerEnd): void {
    const next = this.#end(held, end);
    if (next !== undefined) this.#work(next);
    this.#fill();
  }

  /** The next item of its run, if there is one that may begin. */
  #end(held: HeldItem, end: HandlerEnd): HeldItem | undefined {
    const now = this.#parts.clock.monotonic();
    this.#held.delete(held);
    this.#keeper.remove(held);
    this.#pace.note(now - held.startedAt);
    if (held.lost || held.leftMs <= 0) {
      // Not certain any more: to settle now could end the work of another holder.
      this.#endings.discarded(held, "its time ran out before the handler ended", "expired");
      this.#overAlone(held);
      this.#onChange?.();
      this.#changed();
      return undefined;
    }
    const ending = chooseEnding(held, end, {
      attempt: this.#attemptOf(held.grant.item),
      retry: this.#settings.retry,
      resultLimit: this.#settings.resultLimit,
      stopping: this.#stopping,
      random: this.#parts.random,
    });
    const next = this.#next(held, ending, now);
    if (next === undefined) this.#finish(held, ending);
    return next;
  }

  #next({ grant: { item }, run, isAborted }: HeldItem, ending: Ending, now: number): HeldItem | undefined {
    if (ending.type !== "done" || isAborted || this.#stopping || this.#solitude.isWanted) return undefined;
    const next = run?.next(item, ending, now);
    if (run === undefined) return undefined;
    if (next === undefined) {
      this.#pace.runOver(run.begun, run.covered);
      return undefined;
    }
    const held = this.#hold(next, run);
    this.#keeper.add(held);
    return held;
  }

  #giveBack(all: readonly HeldItem[]): void {
    for (const held of all) this.#leave(held, { type: "release" });
  }

  /** Its handler is not begun. */
  #leave(held: HeldItem, ending: Ending): void {
    this.#keeper.remove(held);
    this.#finish(held, ending);
  }

  #finish(held: HeldItem, ending: Ending): void {
    this.#endings.settling(held);
    const next = this.#nextAfter(held, ending);
    if (next !== undefined) this.#nexts += 1;
    const settlement = {
      lease: held.grant.lease,
      ...held.run?.report(),
      ending,
      ...(next === undefined ? {} : { next }),
    };
    this.#toSettle.push({ held, settlement });
    if (this.#toSettle.length >= SETTLE_EARLY) this.#turn();
    else this.#scheduleTurn();
  }

  /** The slot that has come free is for the key's next run, if the store knew of one and nothing else is there for it. */
  #nextAfter({ run }: HeldItem, ending: Ending): NextRequest | undefined {
    if (!endsItem(ending) || run?.hasMore !== true || this.#stopping || this.#solitude.isWanted || this.#freeSlots <= 0)
      return undefined;
    const { name: worker, leaseMs } = this.#settings;
    return { worker, leaseMs, items: this.#items, lost: this.#onLost };
  }

  async #settle(settled: readonly Settled[]): Promise<void> {
    this.#settling += 1;
    const results = await settleUntilCertain(this.#parts, settled);
    this.#settling -= 1;
    const grants: Grant[] = [];
    for (const [index, { held, settlement }] of settled.entries()) {
      this.#endings.answered(held);
      const { ending, next } = settlement;
      const result = results[index] ?? "lost";
      if (next !== undefined) this.#nexts -= 1;
      if (typeof result === "object") grants.push(result);
      if (result !== "lost" && result !== "unknown") {
        if (endsItem(ending)) this.#unbegun.ended(held.grant.item);
        this.#endings.settled(held, ending);
      } else if (isCertain(held)) this.#endings.discarded(held, "the store no longer has it", "taken");
      else this.#endings.discarded(held, "its time ran out before its end was written", "expired");
      if (result === "lost") this.#noteUnbegun(held);
      this.#overAlone(held);
    }
    if (grants.length > 0) this.#take(grants);
    this.#onChange?.();
  }

  /** The store counts the attempt of the first of a run; one behind it counts when it begins. */
  #noteUnbegun({ begun, run, grant: { item } }: HeldItem): void {
    if (!begun && run?.first === item) this.#unbegun.note(item);
  }

  #overAlone(held: HeldItem): void {
    if (this.#alone !== held) return;
    this.#alone = undefined;
    this.#solitude.over(this);
  }

  #track(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => {
      this.#pending.delete(work);
      this.#changed();
    });
  }

  /** A call came back, or an item ended. */
  #changed(): void {
    this.#quietCheck?.();
    this.#solitude.look();
    if (!this.#stopping || this.#toSettle.length > 0) this.#scheduleTurn();
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

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
