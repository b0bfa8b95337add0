import type { Clock, Timer } from "../domain/clock.ts";
import type { WakeAdapter } from "./port.ts";

/**
 * A worker that is busy for a moment has not left: to subscribe anew for each of its claims would cost more than the claims. Those who notice
 * late that nobody waits have a second for that, and the last subscription is gone five seconds after the last worker.
 */
const LINGER_MS = 4_000;
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
  /** From now on nothing is heard, or something is again. */
  readonly changed: () => void;
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
  /** Set while it goes on listening for nobody. */
  #lingering: Timer | undefined;
  /** Until a subscription that failed is tried again. Apart from the other: either may come while the other runs. */
  #again: Timer | undefined;
  #isClosed = false;
  #isDeaf = false;
  #stop: (() => Promise<void>) | undefined;
  #change: Promise<void> | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(parts: SharedListenerParts) {
    this.#parts = parts;
  }

  /** Whether messages surely arrive, as far as one can know. */
  get isHearing(): boolean {
    return this.#isSubscribed && !this.#isDeaf;
  }

  get #isSubscribed(): boolean {
    return this.#stop !== undefined;
  }

  /** Counts one more member, until the function it returns is called. Who joins before it listens hears `missed` when it does. */
  join(): () => void {
    this.#members += 1;
    this.#stopLingering();
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
    this.#stopLingering();
    this.#again?.cancel();
    this.#settle();
    await this.#change;
  }

  #linger(): void {
    if (this.#isClosed) return;
    this.#stopLingering();
    this.#lingering = this.#parts.clock.setTimer(LINGER_MS, () => {
      this.#lingering = undefined;
      // Whoever comes next knows nothing of how often it was tried in vain before.
      this.#again?.cancel();
      this.#pauseMs = FIRST_PAUSE_MS;
      this.#settle();
    });
  }

  #stopLingering(): void {
    this.#lingering?.cancel();
    this.#lingering = undefined;
  }

  get #isWanted(): boolean {
    return !this.#isClosed && (this.#members > 0 || this.#lingering !== undefined);
  }

  #settle(): void {
    this.#change ??= this.#run().finally(() => {
      this.#change = undefined;
    });
  }

  async #run(): Promise<void> {
    while (this.#isWanted !== this.#isSubscribed) {
      if (this.#isSubscribed) await this.#end();
      else if (!(await this.#begin())) return;
    }
  }

  async #begin(): Promise<boolean> {
    const { adapter, channel, heard, changed, trouble } = this.#parts;
    try {
      this.#stop = await adapter.listen(channel, heard, this.#hearsAgain, this.#deaf);
    } catch (error) {
      // A carrier that is let go of refuses whoever was about to listen.
      if (this.#isClosed) return false;
      trouble(error);
      changed();
      this.#again?.cancel();
      this.#again = this.#parts.clock.setTimer(this.#pauseMs, () => this.#settle());
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
      return false;
    }
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#hearsAgain();
    return true;
  }

  readonly #hearsAgain = (): void => {
    this.#isDeaf = false;
    this.#parts.changed();
    this.#parts.missed();
  };

  readonly #deaf = (): void => {
    if (this.#isDeaf) return;
    this.#isDeaf = true;
    this.#parts.trouble(new Error("The connection was lost."));
    this.#parts.changed();
  };

  async #end(): Promise<void> {
    const stop = this.#stop;
    this.#stop = undefined;
    this.#isDeaf = false;
    // What cannot be unsubscribed is gone, or goes with its connection.
    await stop?.().catch(this.#parts.trouble);
  }
}
