import type { Clock, Timer } from "../domain/clock.ts";
import type { WakeAdapter } from "./port.ts";

/** A worker that is busy for a moment has not left: to subscribe anew for each of its claims would cost more than the claims. */
const LINGER_MS = 5_000;
/** First wait after a subscription failed; doubles up to the longest. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

export interface SharedListenerParts {
  readonly adapter: WakeAdapter;
  readonly channel: string;
  readonly clock: Clock;
  readonly heard: (text: string) => void;
  /** Messages may have been lost, or were sent before anybody listened. */
  readonly missed: () => void;
  readonly trouble: (error: unknown) => void;
}

/**
 * One subscription for all who listen to a channel in this process.
 *
 *   silent ──first joins──▶ starting ──▶ listening ──last has left──▶ lingering ──▶ stopping ──▶ silent
 *                              ╰──failed: again after a pause
 *
 * Changes happen one at a time, whatever comes and goes meanwhile; each step asks again what is wanted.
 */
export class SharedListener {
  readonly #parts: SharedListenerParts;
  #members = 0;
  #isLingering = false;
  #isClosed = false;
  #stop: (() => Promise<void>) | undefined;
  #change: Promise<void> | undefined;
  #timer: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(parts: SharedListenerParts) {
    this.#parts = parts;
  }

  /** Whether messages surely arrive, as far as one can know. */
  get isListening(): boolean {
    return this.#stop !== undefined;
  }

  /** Counts one more member, until the function it returns is called. Who joins before it listens hears `missed` when it does. */
  join(): () => void {
    this.#members += 1;
    this.#isLingering = false;
    if (this.isListening) this.#timer?.cancel();
    if (this.#members === 1) this.#settle();
    let isMember = true;
    return () => {
      if (!isMember) return;
      isMember = false;
      this.#members -= 1;
      if (this.#members === 0) this.#linger();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#settle();
    await this.#change;
  }

  #linger(): void {
    if (this.#isClosed) return;
    this.#isLingering = true;
    this.#after(LINGER_MS, () => {
      this.#isLingering = false;
      this.#settle();
    });
  }

  #after(delayMs: number, work: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.setTimer(delayMs, work);
  }

  get #isWanted(): boolean {
    return !this.#isClosed && (this.#members > 0 || this.#isLingering);
  }

  #settle(): void {
    this.#change ??= this.#run().finally(() => {
      this.#change = undefined;
    });
  }

  async #run(): Promise<void> {
    while (this.#isWanted !== this.isListening) {
      if (this.isListening) await this.#end();
      else if (!(await this.#begin())) return;
    }
  }

  async #begin(): Promise<boolean> {
    const { adapter, channel, heard, missed, trouble } = this.#parts;
    try {
      this.#stop = await adapter.listen(channel, heard, missed);
    } catch (error) {
      trouble(error);
      if (!this.#isClosed) this.#after(this.#pauseMs, () => this.#settle());
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
      return false;
    }
    this.#pauseMs = FIRST_PAUSE_MS;
    missed();
    return true;
  }

  async #end(): Promise<void> {
    const stop = this.#stop;
    this.#stop = undefined;
    // What cannot be unsubscribed is gone, or goes with its connection.
    await stop?.().catch(this.#parts.trouble);
  }
}
