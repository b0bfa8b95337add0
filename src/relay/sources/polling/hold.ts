/**
 * How long a message is surely this process's: until the queue would show it to others, less a margin for clocks and
 * the way.
 */
import { type Clock, type Instant, instant, systemClock, type Timer } from "../../../domain/clock.ts";
import { BatonError } from "../../../domain/errors.ts";
import { leaseLeftMs, leaseMarginMs } from "../../../domain/lease.ts";

/** The message is, or may be any moment, somebody else's. */
export class MessageLost extends BatonError {
  constructor(source: string, id: string, why: string, options?: ErrorOptions) {
    super(
      "LEASE_LOST",
      `Message ${id} of source ${source} is lost: ${why}. Others may be working on it now. ` +
        "Nothing was changed; whatever this delivery did may be done again.",
      options,
    );
  }
}

export class Hold {
  readonly #source: string;
  readonly #id: string;
  readonly #clock: Clock;
  readonly #lost = new AbortController();
  #since: Instant;
  #holdMs: number;
  #lostBy: MessageLost | undefined;
  #timer: Timer | undefined;
  #isEnded = false;

  /** @param since from before the queue gave the message away */
  constructor(source: string, id: string, holdMs: number, since?: Instant, clock: Clock = systemClock) {
    this.#source = source;
    this.#id = id;
    this.#clock = clock;
    this.#since = since ?? instant(clock);
    this.#holdMs = holdMs;
    if (this.#leftMs() <= 0) this.#runOut();
    else this.#watch();
  }

  /** Whoever looks after a standstill sees what is so, also before the timer had its turn. */
  get lost(): AbortSignal {
    if (this.#lostBy === undefined && this.#leftMs() <= 0) this.#runOut();
    return this.#lost.signal;
  }

  now(): Instant {
    return instant(this.#clock);
  }

  /** @param since from before the request was sent, so that the hold ends here before it ends in the queue */
  extended(since: Instant, holdMs: number): void {
    if (this.#isEnded || this.#lostBy !== undefined) return;
    this.#since = since;
    this.#holdMs = holdMs;
    this.#watch();
  }

  /** Throws when the message is not surely this process's: computed from the clock, because a timer may be late. */
  check(): void {
    if (this.#leftMs() <= 0) this.#runOut();
    if (this.#lostBy !== undefined) throw this.#lostBy;
    if (this.#isEnded) throw new MessageLost(this.#source, this.#id, "it has been settled already");
  }

  lose(why: string, cause?: unknown): MessageLost {
    this.#timer?.cancel();
    this.#lostBy ??= new MessageLost(this.#source, this.#id, why, { cause });
    if (!this.#isEnded) this.#lost.abort(this.#lostBy);
    return this.#lostBy;
  }

  /** The message was settled: nothing can be lost any more. */
  end(): void {
    this.#isEnded = true;
    this.#timer?.cancel();
  }

  #runOut(): void {
    this.lose("its time is over, and it was not extended");
  }

  #leftMs(): number {
    if (this.#isEnded) return Infinity;
    return leaseLeftMs(this.#clock, this.#since, this.#holdMs, leaseMarginMs(this.#holdMs));
  }

  #watch(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#leftMs() + 1, () => {
      if (this.#leftMs() <= 0) this.#runOut();
      else this.#watch();
    });
  }
}
