import type { Clock, Timer } from "../domain/clock.ts";
import { Cancelled, HandlerTimeout } from "../domain/errors.ts";
import { renewAfterMs } from "../domain/lease.ts";
import { PassingSet } from "../domain/passing.ts";
import type { Engine, Lease, Renewal } from "../engine/port.ts";
import type { WorkerEvent } from "./events.ts";
import type { Outages } from "./outages.ts";
import type { Finished } from "./run.ts";
import type { HeldItem } from "./held-item.ts";
import { isLate, type Stall, StallWatch } from "./stall-watch.ts";

/** A progress report waits this long for others, so that a chatty handler does not become a chatty client. */
const PROGRESS_DELAY_MS = 200;
/** After a renewal that got no answer: soon again, the lease is running out. At most this share of it, and at least half of that. */
const RETRY_SHARE = 1 / 12;
const DOING = "renewing leases";

export interface KeeperParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: () => number;
  readonly emit: (event: WorkerEvent) => void;
  readonly outages: Outages;
  /** A renewal has told the store how these items of a run ended. */
  readonly reported?: (finished: readonly Finished[]) => void;
}

/**
 * Keeps the leases of one worker: renews them in batches, ends them at their local deadline whatever the store
 * says, and notices when the event loop stood still. One timer in all, and it is touched rarely, so looking through
 * all runs for the next date costs nothing. No order is taken for granted: a reply that was long on its way brings a
 * lease that is older than those that are here already.
 */
export class LeaseKeeper {
  readonly #parts: KeeperParts;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #timeoutMs: number | undefined;
  readonly #emit: (event: WorkerEvent) => void;
  readonly #all = new PassingSet<HeldItem>();
  /** Those whose handler may still run into its timeout. */
  readonly #timed = new Set<HeldItem>();
  readonly #withProgress = new Set<HeldItem>();
  #progressDueAt = Infinity;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  readonly #stalls = new StallWatch();
  #lastStall: (Stall & { readonly endedAt: number }) | undefined;
  /** When renewals that got no answer are tried again, all of them together. */
  #againAt = 0;

  constructor(parts: KeeperParts, leaseMs: number, timeoutMs: number | undefined) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#leaseMs = leaseMs;
    this.#timeoutMs = timeoutMs;
    this.#emit = parts.emit;
  }

  /** All that came with one answer, before any of it begins: a handler may block, and the others are held meanwhile. */
  add(...heldItems: readonly HeldItem[]): void {
    let first = Infinity;
    for (const held of heldItems) {
      held.renewDueAt = held.since.monotonic + renewAfterMs(this.#leaseMs);
      held.isRenewed = true;
      this.#all.add(held);
      first = Math.min(first, this.#firstDate(held));
    }
    // The next tick is rarely later than this run's first date, so most runs come and go without touching the timer.
    if (!this.#noticeOverdue()) this.#noticeHeldMeanwhile(heldItems);
    if (this.#timerAt > first) this.#arm();
  }

  /** Its handler begins: from here on the timeout counts. */
  began(held: HeldItem): void {
    held.begin();
    if (this.#timeoutMs === undefined || !this.#all.has(held)) return;
    this.#timed.add(held);
    if (this.#timerAt > this.#firstDate(held)) this.#arm();
  }

  /** Its handler goes on: if it lasts longer than a run may, the store hears of those that ended before it. */
  reportInTime(held: HeldItem): void {
    const at = held.run?.reportDueAt ?? Infinity;
    if (at >= held.renewDueAt) return;
    held.renewDueAt = at;
    if (this.#timerAt > at) this.#arm();
  }

  remove(held: HeldItem): void {
    // Before it is gone: it was held while the timer was late.
    const wasLate = this.#noticeOverdue();
    this.#drop(held);
    if (wasLate) this.#arm();
  }

  #drop(held: HeldItem): void {
    held.isRenewed = false;
    this.#all.delete(held);
    if (this.#timeoutMs !== undefined) this.#timed.delete(held);
    if (held.progressShare !== undefined) this.#withProgress.delete(held);
  }

  noteProgress(held: HeldItem): void {
    if (!held.isRenewed) return;
    this.#withProgress.add(held);
    if (this.#progressDueAt !== Infinity) return;
    this.#progressDueAt = this.#clock.monotonic() + PROGRESS_DELAY_MS;
    this.#arm();
  }

  /** Somebody says that the key of one of these went to somebody else. It may be wrong, and costs no more than a renewal then. */
  doubt({ key, fence }: Lease): void {
    for (const held of this.#all) {
      if (held.key !== key || held.fence !== fence) continue;
      held.renewDueAt = this.#clock.monotonic();
      this.#arm();
    }
  }

  /** What still runs is left to itself: its signal has fired, and its lease is to run out. */
  stop(): void {
    for (const held of this.#all) held.isRenewed = false;
    this.#all.clear();
    this.#timed.clear();
    this.#withProgress.clear();
    this.#progressDueAt = Infinity;
    this.#arm();
  }

  #arm(): void {
    this.#noticeOverdue();
    // What is due already is due now: a date in the past would look as if the timer had come late.
    const at = Math.max(this.#nextDue(), this.#clock.monotonic());
    if (at === this.#timerAt) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = at;
    if (at === Infinity) return;
    this.#stalls.begin();
    this.#timer = this.#clock.setTimer(Math.max(0, Math.ceil(at - this.#clock.monotonic())), () => this.#tick());
  }

  #nextDue(): number {
    let at = this.#progressDueAt;
    for (const held of this.#all) at = Math.min(at, this.#firstDate(held));
    return at;
  }

  #firstDate(held: HeldItem): number {
    let at = held.deadline;
    if (held.isRenewed) at = Math.min(at, held.renewDueAt);
    if (this.#timed.has(held)) at = Math.min(at, held.startedAt + (this.#timeoutMs ?? Infinity));
    return at;
  }

  #tick(): void {
    const now = this.#clock.monotonic();
    if (!this.#noticeOverdue()) {
      this.#timer = undefined;
      this.#timerAt = Infinity;
    }
    // Deadlines first: after a stall nothing may be renewed, or settled, that is not certain any more.
    this.#endExpired();
    this.#endOverlong(now);
    this.#renewDue(now);
    this.#arm();
  }

  #endExpired(): void {
    for (const held of this.#all) {
      if (held.leftMs > 0) continue;
      this.#drop(held);
      held.lose("its time ran out before it was renewed");
      this.#tellLoss(held, "expired");
    }
  }

  #loseTaken(held: HeldItem): void {
    this.#drop(held);
    held.lose("the store no longer has it");
    this.#tellLoss(held, "taken");
  }

  #tellLoss(held: HeldItem, why: "expired" | "taken"): void {
    if (held.takeLoss()) this.#emit({ type: "lost", item: held.grant.item, fence: held.fence, why });
  }

  #endOverlong(now: number): void {
    if (this.#timeoutMs === undefined) return;
    for (const held of this.#timed) {
      if (held.startedAt + this.#timeoutMs > now) continue;
      this.#timed.delete(held);
      // Not renewed from here on: a handler that ignores its signal loses the key in a lease's time.
      held.isRenewed = false;
      this.#withProgress.delete(held);
      // A run that was told to end for another reason before, ends for that reason: a stop burns no attempt.
      held.timedOut = !held.signal.aborted;
      held.abort(new HandlerTimeout(this.#timeoutMs));
    }
  }

  #renewDue(now: number): void {
    const due = new Set<HeldItem>();
    if (this.#progressDueAt <= now) {
      this.#progressDueAt = Infinity;
      for (const held of this.#withProgress) due.add(held);
      this.#withProgress.clear();
    }
    for (const held of this.#all) {
      if (held.isRenewed && held.renewDueAt <= now) due.add(held);
    }
    if (due.size === 0) return;
    for (const held of due) held.renewDueAt = now + renewAfterMs(this.#leaseMs);
    void this.#renew([...due]);
  }

  async #renew(heldItems: readonly HeldItem[]): Promise<void> {
    const renewals = heldItems.map((held) => this.#renewal(held));
    try {
      const results = await this.#parts.outages.answered(DOING, this.#parts.engine.renew(renewals));
      // An answer may come before the timer that is late: whom the stall hurt is told before they are lost.
      this.#noticeOverdue();
      this.#parts.outages.worked(DOING);
      // The timer may be late. What was not certain for a moment is over, although the store would go on.
      this.#endExpired();
      for (const [index, held] of heldItems.entries()) {
        const result = results[index];
        // A run that ended meanwhile is settled, and so not renewable: that is no loss.
        if (!this.#all.has(held) || result === undefined) continue;
        if (!result.ok) {
          this.#loseTaken(held);
          continue;
        }
        held.renewed(result.since);
        this.#reported(held);
        if (result.cancelRequested && !held.cancelled) {
          held.cancelled = true;
          held.abort(new Cancelled(held.grant.item.id));
          this.#emit({ type: "cancelling", item: held.grant.item });
        }
      }
    } catch (error) {
      this.#parts.outages.failed(DOING, error);
      this.#renewAgain(heldItems);
    }
    this.#arm();
  }

  #renewal({ grant: { lease }, progressShare: progress, run }: HeldItem): Renewal {
    const report = run?.report();
    // The store gives back what is behind the item, so nothing of it may begin any more.
    run?.close();
    return { lease, leaseMs: this.#leaseMs, ...(progress === undefined ? {} : { progress }), ...report };
  }

  #reported({ run }: HeldItem): void {
    const finished = run?.reported() ?? [];
    if (finished.length > 0) this.#parts.reported?.(finished);
  }

  /** Together with others that failed, so that an outage is not asked about once for each lease. */
  #renewAgain(heldItems: readonly HeldItem[]): void {
    const now = this.#clock.monotonic();
    if (this.#againAt <= now) this.#againAt = now + this.#leaseMs * RETRY_SHARE * (0.5 + this.#parts.random() / 2);
    for (const held of heldItems) held.renewDueAt = this.#againAt;
  }

  /** The timer should have fired long ago: this process stood still. Told before anything is changed that was held meanwhile. */
  #noticeOverdue(): boolean {
    const now = this.#clock.monotonic();
    const lateMs = now - this.#timerAt;
    if (!isLate(lateMs, this.#leaseMs)) return false;
    const stall = this.#stalls.end(lateMs, this.#leaseMs);
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
    if (stall === undefined) return true;
    this.#lastStall = { ...stall, endedAt: now };
    if (this.#all.size > 0) this.#tellStall(stall, this.#all.values());
    return true;
  }

  /** What was granted while this process stood still comes after the timer that was late: it was held, too, and may be over. */
  #noticeHeldMeanwhile(heldItems: readonly HeldItem[]): void {
    const stall = this.#lastStall;
    if (stall === undefined) return;
    const over = heldItems.filter(({ since, leftMs }) => since.monotonic < stall.endedAt && leftMs <= 0);
    if (over.length > 0) this.#tellStall(stall, over);
  }

  #tellStall({ lateMs, cause }: Stall, heldItems: readonly HeldItem[]): void {
    for (const held of heldItems) held.stalled = true;
    this.#emit({ type: "stalled", lateMs, cause, keys: heldItems.map(({ key }) => key) });
  }
}
