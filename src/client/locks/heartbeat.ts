import { type Clock, type Instant, instant, type Timer } from "../../domain/clock.ts";
import { leaseLeftMs, leaseMarginMs, renewAfterMs } from "../../domain/lease.ts";
import { type Stall, StallWatch } from "../../worker/stall-watch.ts";

/** After a sign of life that got no answer: soon again, the lease is running out. */
const RETRY_SHARE = 1 / 12;

/** `expired`: the local deadline passed. `ended`: the store said that it is over. */
export type Loss = "expired" | "ended";

/** Something in the store that lasts for as long as somebody gives signs of life. */
export interface Life {
  readonly leaseMs: number;
  /** Read before it was asked for: the first deadline counts from here. */
  readonly since: Instant;
  /** A sign of life. Undefined: it is over in the store. */
  renew(): Promise<Instant | undefined>;
}

export interface HeartbeatListener {
  /** Once, and nothing else after it. */
  lost(loss: Loss): void;
  stalled(stall: Stall): void;
  trouble(error: unknown): void;
  /** A sign of life was answered. */
  answered?(): void;
  /** Asked before each sign of life. False: nobody needs it any more, and no sign is given. */
  wanted?(): boolean;
}

/**
 * Keeps one life: renews it at a third of its lease, tries again soon when no answer came, and ends it at its local
 * deadline whatever the store says. One timer.
 *
 *   beating ──deadline, or the store says that it is over──▶ lost
 *      └──────stop()──▶ stopped
 */
export class Heartbeat {
  readonly #life: Life;
  readonly #clock: Clock;
  readonly #listener: HeartbeatListener;
  readonly #stalls = new StallWatch();
  #since: Instant;
  #marginMs: number;
  #renewDueAt: number;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  #over = false;

  constructor(life: Life, clock: Clock, listener: HeartbeatListener) {
    this.#life = life;
    this.#clock = clock;
    this.#listener = listener;
    this.#since = life.since;
    this.#marginMs = leaseMarginMs(life.leaseMs);
    this.#renewDueAt = life.since.monotonic + renewAfterMs(life.leaseMs);
    this.#arm();
  }

  /** Computed from the clocks each time: a cached answer would be wrong after a stall. */
  get leftMs(): number {
    if (this.#over) return 0;
    return Math.max(0, leaseLeftMs(this.#clock, this.#since, this.#life.leaseMs, this.#marginMs));
  }

  /** Whether it is certain at this moment. If its time is up, whoever listens has been told when this returns. */
  check(): boolean {
    if (this.leftMs > 0) return true;
    this.lose("expired");
    return false;
  }

  /** There is reason to ask the store whether it goes on. */
  renewNow(): void {
    this.#renewDueAt = this.#clock.monotonic();
    this.#arm();
  }

  stop(): void {
    this.#over = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    if (this.#over) return;
    const deadline = this.#since.monotonic + this.#life.leaseMs - this.#marginMs;
    // What is due already is due now: a date in the past would look as if the timer had come late.
    const at = Math.max(Math.min(this.#renewDueAt, deadline), this.#clock.monotonic());
    if (at === this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#stalls.begin();
    this.#timer = this.#clock.setTimer(Math.max(0, Math.ceil(at - this.#clock.monotonic())), () => this.#tick());
  }

  #tick(): void {
    const now = this.#clock.monotonic();
    const stall = this.#stalls.end(now - this.#timerAt, this.#life.leaseMs);
    this.#timer = undefined;
    this.#timerAt = Infinity;
    if (stall !== undefined) this.#listener.stalled(stall);
    // The deadline first: after a stall nothing may be renewed that is not certain any more.
    if (!this.check()) return;
    if (this.#renewDueAt <= now) {
      if (this.#listener.wanted?.() === false) return this.stop();
      this.#renewDueAt = now + renewAfterMs(this.#life.leaseMs);
      void this.#renew();
    }
    this.#arm();
  }

  /** A second one may be under way when the reply to the first is late: it may be the reply alone that is lost. */
  async #renew(): Promise<void> {
    try {
      const since = await this.#life.renew();
      this.#listener.answered?.();
      if (this.#over) return;
      if (since === undefined) return this.lose("ended");
      // The timer may be late. What was not certain for a moment is over, although the store would go on.
      if (this.check()) this.#renewed(since);
    } catch (error) {
      if (this.#over) return;
      this.#listener.trouble(error);
      this.#renewDueAt = this.#clock.monotonic() + this.#life.leaseMs * RETRY_SHARE;
    }
    this.#arm();
  }

  #renewed(since: Instant): void {
    // Replies may overtake one another: an old one does not take back what a newer one gave.
    if (since.monotonic < this.#since.monotonic) return;
    const roundTripMs = instant(this.#clock).monotonic - since.monotonic;
    this.#since = since;
    // A slow way to the store asks for a larger margin.
    this.#marginMs = leaseMarginMs(this.#life.leaseMs, roundTripMs);
  }

  /** It is over, whoever says so. */
  lose(loss: Loss): void {
    if (this.#over) return;
    this.stop();
    this.#listener.lost(loss);
  }
}
