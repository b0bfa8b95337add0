import type { Duration } from "../../domain/duration.ts";
import { checkOptions, type OptionNames } from "../../domain/options.ts";
import { parseRetire } from "./options.ts";

export interface ReleaseOptions {
  /** The work that the lock protected is done: nobody is to get it again for this long. */
  readonly retire?: Duration | undefined;
}

const RELEASE_OPTIONS: OptionNames<ReleaseOptions> = { retire: true };

/** A lock in your hands, until you release it or it is lost. `await using` releases it. */
export interface HeldLock extends AsyncDisposable {
  readonly name: string;
  /** Greater than every earlier fence of this lock. Store it with what you write, and refuse writes under a lower one. */
  readonly fence: number;
  /** Fires when the lock is lost, or is to be let go because its session, election or connection ends. */
  readonly signal: AbortSignal;
  /** Milliseconds for which the lock is certain without a further sign of life. */
  readonly leftMs: number;
  /** Throws `LockLost`, or the reason of the signal, unless the lock is certain at this moment. */
  check(): void;
  /** Lets go; the next in line has it at once. False: it was lost before, or let go already. */
  release(options?: ReleaseOptions): Promise<boolean>;
}

/** Whoever gives the signs of life for a hold. */
export interface HoldKeeper {
  readonly leftMs: number;
  /** Loses every hold of this keeper if their time is up. */
  check(): boolean;
  /** Lets go in the store. Only a hold that was not lost comes here, and once at a time. */
  release(hold: Hold, retireMs: number | undefined): Promise<boolean>;
  /** A release that nobody waits for failed; the hold runs out by itself. */
  trouble(doing: string, error: unknown): void;
}

/**
 *   held ──release──▶ released
 *     └───its keeper says so──▶ lost (the signal fires)
 *
 * `abort` only fires the signal: the lock is held until it is released.
 */
export class Hold implements HeldLock {
  readonly name: string;
  readonly fence: number;
  readonly #keeper: HoldKeeper;
  readonly #lossOf: (why: string) => Error;
  /** Made when first asked for: most never look, and a controller costs more than the rest of a hold. */
  #controller: AbortController | undefined;
  #reason: Error | undefined;
  #loss: Error | undefined;
  #over = false;
  #releasing: Promise<boolean> | undefined;

  constructor(name: string, fence: number, keeper: HoldKeeper, lossOf: (why: string) => Error) {
    this.name = name;
    this.fence = fence;
    this.#keeper = keeper;
    this.#lossOf = lossOf;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get lost(): boolean {
    return this.#loss !== undefined;
  }

  get leftMs(): number {
    return this.#over ? 0 : this.#keeper.leftMs;
  }

  check(): void {
    if (!this.#over) this.#keeper.check();
    if (this.#reason !== undefined) throw this.#reason;
    if (this.#over) throw this.#lossOf("it was released");
  }

  /** Unlike `check`, content with a lock that is to be let go, or has been. */
  assertNotLost(): void {
    if (!this.#over) this.#keeper.check();
    if (this.#loss !== undefined) throw this.#loss;
  }

  async release(options: ReleaseOptions = {}): Promise<boolean> {
    const { retire } = checkOptions(options, RELEASE_OPTIONS);
    const retireMs = retire === undefined ? undefined : parseRetire(retire, "retire");
    if (this.#releasing !== undefined) return await this.#releasing;
    if (this.#over || !this.#keeper.check()) return false;
    // What is being let go must not be relied on any more, also while no reply has come.
    this.#over = true;
    this.#releasing = this.#keeper.release(this, retireMs);
    try {
      return await this.#releasing;
    } finally {
      this.#releasing = undefined;
    }
  }

  /**
   * Throws if the lock was lost while work was done under it, also when only the store's answer to the release tells so. What
   * was released already was not lost.
   */
  async releaseAfterWork(options: ReleaseOptions = {}, doing = `releasing lock ${this.name}`): Promise<void> {
    this.assertNotLost();
    const wasHeld = !this.#over;
    const released = await this.release(options).catch((error: unknown) => {
      // No answer is no loss: by its lease the lock was held.
      this.#keeper.trouble(doing, error);
      return true;
    });
    this.assertNotLost();
    if (wasHeld && !released && this.#keeper.leftMs > 0) throw this.#lossOf("the store did not have it any more");
  }

  /** For whoever leaves a scope: the work is over, and what the store says now does not change that. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      this.#keeper.trouble(`releasing lock ${this.name}`, error);
    }
  }

  lose(why: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#loss = this.#lossOf(why);
    this.#reason = this.#loss;
    this.#controller?.abort(this.#reason);
  }

  /** Asks whoever uses the lock to come to an end. The first reason stays, except that a loss is always told. */
  abort(reason: Error): void {
    if (this.#over) return;
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
