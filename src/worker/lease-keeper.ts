import type { Clock, Timer } from "../domain/clock.ts";
import { Cancelled, HandlerTimeout } from "../domain/errors.ts";
import { renewAfterMs } from "../domain/lease.ts";
import { PassingSet } from "../domain/passing.ts";
import type { Engine, Lease, Renewal } from "../engine/port.ts";
import type { WorkerEvent } from "./events.ts";
import type { Run } from "./run.ts";
import { StallWatch } from "./stall-watch.ts";

/** A progress report waits this long for others, so that a chatty handler does not become a chatty client. */
const PROGRESS_DELAY_MS = 200;
/** After a renewal that got no answer: soon again, the lease is running out. */
const RETRY_SHARE = 1 / 12;

/**
 * Keeps the leases of one worker: renews them in batches, ends them at their local deadline whatever the store
 * says, and notices when the event loop stood still. One timer in all, and it is touched rarely, so looking through
 * all runs for the next date costs nothing. No order is taken for granted: a reply that was long on its way brings a
 * lease that is older than those that are here already.
 */
export class LeaseKeeper {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #timeoutMs: number | undefined;
  readonly #emit: (event: WorkerEvent) => void;
  readonly #all = new PassingSet<Run>();
  /** Those whose handler may still run into its timeout. */
  readonly #timed = new Set<Run>();
  readonly #withProgress = new Set<Run>();
  #progressDueAt = Infinity;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  readonly #stalls = new StallWatch();

  constructor(
    engine: Engine,
    clock: Clock,
    leaseMs: number,
    timeoutMs: number | undefined,
    emit: (event: WorkerEvent) => void,
  ) {
    this.#engine = engine;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#timeoutMs = timeoutMs;
    this.#emit = emit;
  }

  add(run: Run): void {
    run.renewDueAt = run.grant.lease.since.monotonic + renewAfterMs(this.#leaseMs);
    run.isRenewed = true;
    this.#all.add(run);
    if (this.#timeoutMs !== undefined) this.#timed.add(run);
    // The next tick is rarely later than this run's first date, so most runs come and go without touching the timer.
    if (this.#timerAt > this.#firstDate(run)) this.#arm();
  }

  remove(run: Run): void {
    run.isRenewed = false;
    this.#all.delete(run);
    if (this.#timeoutMs !== undefined) this.#timed.delete(run);
    if (run.progressShare !== undefined) this.#withProgress.delete(run);
  }

  noteProgress(run: Run): void {
    if (!run.isRenewed) return;
    this.#withProgress.add(run);
    if (this.#progressDueAt !== Infinity) return;
    this.#progressDueAt = this.#clock.monotonic() + PROGRESS_DELAY_MS;
    this.#arm();
  }

  /** Somebody says that the key of one of these went to somebody else. It may be wrong, and costs no more than a renewal then. */
  doubt({ key, fence }: Lease): void {
    for (const run of this.#all) {
      if (run.key !== key || run.fence !== fence) continue;
      run.renewDueAt = this.#clock.monotonic();
      this.#arm();
    }
  }

  /** What still runs is left to itself: its signal has fired, and its lease is to run out. */
  stop(): void {
    for (const run of this.#all) run.isRenewed = false;
    this.#all.clear();
    this.#timed.clear();
    this.#withProgress.clear();
    this.#progressDueAt = Infinity;
    this.#arm();
  }

  #arm(): void {
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
    for (const run of this.#all) at = Math.min(at, this.#firstDate(run));
    return at;
  }

  #firstDate(run: Run): number {
    let at = run.deadline;
    if (run.isRenewed) at = Math.min(at, run.renewDueAt);
    if (this.#timed.has(run)) at = Math.min(at, run.startedAt + (this.#timeoutMs ?? Infinity));
    return at;
  }

  #tick(): void {
    const now = this.#clock.monotonic();
    this.#noticeDelay(now - this.#timerAt);
    this.#timer = undefined;
    this.#timerAt = Infinity;
    // Deadlines first: after a stall nothing may be renewed, or settled, that is not certain any more.
    this.#endExpired();
    this.#endOverlong(now);
    this.#renewDue(now);
    this.#arm();
  }

  #endExpired(): void {
    for (const run of this.#all) {
      if (run.leftMs > 0) continue;
      this.remove(run);
      run.lose("its time ran out before it was renewed");
      this.#emit({ type: "lost", item: run.grant.item, fence: run.fence, why: "expired" });
    }
  }

  #loseTaken(run: Run): void {
    this.remove(run);
    run.lose("the store no longer has it");
    this.#emit({ type: "lost", item: run.grant.item, fence: run.fence, why: "taken" });
  }

  #endOverlong(now: number): void {
    if (this.#timeoutMs === undefined) return;
    for (const run of this.#timed) {
      if (run.startedAt + this.#timeoutMs > now) continue;
      this.#timed.delete(run);
      // Not renewed from here on: a handler that ignores its signal loses the key in a lease's time.
      run.isRenewed = false;
      // A run that was told to end for another reason before, ends for that reason: a stop burns no attempt.
      run.timedOut = !run.signal.aborted;
      run.abort(new HandlerTimeout(this.#timeoutMs));
    }
  }

  #renewDue(now: number): void {
    const due = new Set<Run>();
    if (this.#progressDueAt <= now) {
      this.#progressDueAt = Infinity;
      for (const run of this.#withProgress) due.add(run);
      this.#withProgress.clear();
    }
    for (const run of this.#all) {
      if (run.isRenewed && run.renewDueAt <= now) due.add(run);
    }
    if (due.size === 0) return;
    for (const run of due) run.renewDueAt = now + renewAfterMs(this.#leaseMs);
    void this.#renew([...due]);
  }

  async #renew(runs: readonly Run[]): Promise<void> {
    const renewals = runs.map((run): Renewal => {
      const { lease } = run.grant;
      return run.progressShare === undefined
        ? { lease, leaseMs: this.#leaseMs }
        : { lease, leaseMs: this.#leaseMs, progress: run.progressShare };
    });
    try {
      const results = await this.#engine.renew(renewals);
      // The timer may be late. What was not certain for a moment is over, although the store would go on.
      this.#endExpired();
      for (const [index, run] of runs.entries()) {
        const result = results[index];
        // A run that ended meanwhile is settled, and so not renewable: that is no loss.
        if (!this.#all.has(run) || result === undefined) continue;
        if (!result.ok) {
          this.#loseTaken(run);
          continue;
        }
        run.renewed(result.since);
        if (result.cancelRequested && !run.cancelled) {
          run.cancelled = true;
          run.abort(new Cancelled(run.grant.item.id));
          this.#emit({ type: "cancelling", item: run.grant.item });
        }
      }
    } catch (error) {
      this.#emit({ type: "trouble", doing: "renewing leases", error });
      const soon = this.#clock.monotonic() + this.#leaseMs * RETRY_SHARE;
      for (const run of runs) run.renewDueAt = soon;
    }
    this.#arm();
  }

  #noticeDelay(lateMs: number): void {
    const stall = this.#stalls.end(lateMs, this.#leaseMs);
    if (stall !== undefined) this.#emit({ type: "stalled", ...stall, keys: [...this.#all].map((run) => run.key) });
  }
}
