import { isError } from "../../domain/realms.ts";
import { type Instant, instant, elapsedMs, type Timer } from "../../domain/clock.ts";
import { leaseMarginMs } from "../../domain/lease.ts";
import type { RelayContext } from "../context.ts";
import type { SourceMessage } from "../source.ts";

/** After an extension that failed: soon again, the hold is running out. */
const AGAIN_SHARE = 1 / 12;
/** A hold is extended at a third of its time: that leaves room for one that fails and one that is late. */
const EXTEND_SHARE = 1 / 3;

/**
 * Keeps a message this process's for as long as its work takes, hours if need be. When extensions fail for so long that
 * the hold may be over, the message counts as lost, whatever the source would say: somebody else may have it.
 */
export class Upkeep implements Disposable {
  readonly #context: RelayContext;
  readonly #source: string;
  readonly #message: SourceMessage;
  readonly #onLost: (reason: string) => void;
  #since: Instant;
  #timer: Timer | undefined;
  #over = false;

  constructor(context: RelayContext, source: string, message: SourceMessage, onLost: (reason: string) => void) {
    this.#context = context;
    this.#source = source;
    this.#message = message;
    this.#onLost = onLost;
    this.#since = instant(context.clock);
    message.lost.addEventListener("abort", this.#lose);
    if (message.lost.aborted) this.#lose();
    else if (message.holdMs > 0) this.#arm(message.holdMs * EXTEND_SHARE);
  }

  [Symbol.dispose](): void {
    this.#over = true;
    this.#timer?.cancel();
    this.#message.lost.removeEventListener("abort", this.#lose);
  }

  readonly #lose = (): void => {
    const reason: unknown = this.#message.lost.reason;
    this.#end(isError(reason) ? reason.message : "The source says that the message is no longer ours.");
  };

  #end(reason: string): void {
    if (this.#over) return;
    this[Symbol.dispose]();
    this.#onLost(reason);
  }

  /** No later than time runs out: an extension that hangs must not hide that. */
  #arm(delayMs: number): void {
    const leftMs = Math.max(0, Math.ceil(this.#leftMs()));
    this.#timer = this.#context.clock.setTimer(Math.min(delayMs, leftMs), () => void this.#extend());
  }

  /** For how long the message is surely ours. */
  #leftMs(): number {
    const { holdMs } = this.#message;
    return holdMs - leaseMarginMs(holdMs) - elapsedMs(this.#context.clock, this.#since);
  }

  async #extend(): Promise<void> {
    const { clock, tell } = this.#context;
    const { holdMs } = this.#message;
    // Counted from before the request: what the source counts begins later.
    const since = instant(clock);
    if (this.#leftMs() <= 0)
      return this.#end("The message could not be kept: its time ran out before an extension was answered.");
    this.#arm(holdMs * EXTEND_SHARE);
    try {
      await this.#message.extend();
      this.#since = since;
      // What the queue gives at first may be longer than what an extension asks for.
      if (!this.#over && this.#message.holdMs !== holdMs) this.#armAnew(this.#message.holdMs * EXTEND_SHARE);
    } catch (error) {
      if (this.#over) return;
      tell({ type: "source-trouble", source: this.#source, doing: "keeping a message", error });
      this.#armAnew(holdMs * AGAIN_SHARE);
    }
  }

  #armAnew(delayMs: number): void {
    this.#timer?.cancel();
    this.#arm(delayMs);
  }
}
