/** How long a message is surely this process's: until the queue would show it to others, less a margin for clocks and the way. */
import { BatonError, leaseMarginMs } from "../../../index.ts";

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
  readonly #lost = new AbortController();
  #lostBy: MessageLost | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wallEnd = 0;
  #monotonicEnd = 0;
  #isEnded = false;

  constructor(source: string, id: string, holdMs: number) {
    this.#source = source;
    this.#id = id;
    this.extended(moment(), holdMs);
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** @param since from before the request was sent, so that the hold ends here before it ends in the queue */
  extended(since: Moment, holdMs: number): void {
    if (this.#isEnded || this.#lostBy !== undefined) return;
    const usableMs = holdMs - leaseMarginMs(holdMs);
    this.#wallEnd = since.wall + usableMs;
    this.#monotonicEnd = since.monotonic + usableMs;
    this.#watch();
  }

  /** Throws when the message is not surely this process's: computed from both clocks, because a timer may be late. */
  check(): void {
    if (this.#leftMs() <= 0) this.lose("its time is over, and it was not extended");
    if (this.#lostBy !== undefined) throw this.#lostBy;
    if (this.#isEnded) throw new MessageLost(this.#source, this.#id, "it has been settled already");
  }

  lose(why: string, cause?: unknown): MessageLost {
    clearTimeout(this.#timer);
    this.#lostBy ??= new MessageLost(this.#source, this.#id, why, { cause });
    if (!this.#isEnded) this.#lost.abort(this.#lostBy);
    return this.#lostBy;
  }

  /** The message was settled: nothing can be lost any more. */
  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
  }

  #leftMs(): number {
    const now = moment();
    return this.#isEnded ? Infinity : Math.min(this.#wallEnd - now.wall, this.#monotonicEnd - now.monotonic);
  }

  #watch(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#leftMs() <= 0) this.lose("its time is over, and it was not extended");
      else this.#watch();
    }, this.#leftMs() + 1);
    this.#timer.unref();
  }
}

/** One reading of both clocks: the wall clock is stepped by people, the monotonic one stands still while a machine sleeps. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

export function moment(): Moment {
  return { wall: Date.now(), monotonic: performance.now() };
}
