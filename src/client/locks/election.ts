import { type Duration, parseDuration } from "../../domain/duration.ts";
import { BatonError, Closed, InvalidInput, isLasting, show } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { checkFunction, checkOptions, checkSignal, type OptionNames } from "../../domain/options.ts";
import type { HolderReport } from "../../locks/port.ts";
import type { LockContext } from "./context.ts";
import type { HeldLock } from "./hold.ts";
import { type CloseOptions, parseGrace } from "./kept-session.ts";
import { observeHolder } from "./observe.ts";
import { lockLeaseMs, type LockSettings, parseSessionLockOptions } from "./options.ts";
import { Grace, keepAlive, waitFor } from "./patience.ts";
import type { Taken, Taker } from "./taker.ts";

export interface ElectionOptions {
  /** How long nobody leads after a leader vanished. Default 15s. */
  readonly lease?: Duration | undefined;
  /** What others are told about this candidate when it leads: an address, a version. */
  readonly data?: string | undefined;
  /** After a leader vanished, nobody leads for this much longer. Default 0s. */
  readonly delayAfterLoss?: Duration | undefined;
  /** Before this process campaigns again after a term that ended by itself, so that others get their turn. Default 1s. */
  readonly rest?: Duration | undefined;
  /** Stops the election here when it fires. */
  readonly signal?: AbortSignal | undefined;
}

export interface ObserveOptions {
  /** Ends the observation. */
  readonly signal?: AbortSignal | undefined;
}

const ELECTION_OPTIONS: OptionNames<ElectionOptions> = {
  lease: true,
  data: true,
  delayAfterLoss: true,
  rest: true,
  signal: true,
};
const OBSERVE_OPTIONS: OptionNames<ObserveOptions> = { signal: true };

export interface Leader extends HolderReport {
  /** It is this connection. */
  readonly me: boolean;
}

interface Candidacy {
  readonly giveUp: AbortController;
  readonly elected: Promise<Taken>;
}

/**
 * A candidate, or somebody who looks on. The election is the lock of the same name: its holder leads, those who wait for it
 * are candidates, and its fence is the number of the term.
 *
 *   idle ──campaign()──▶ candidate ──elected──▶ leading ──resign(), or the lock is lost──▶ idle
 *   any ──stop()──▶ stopped
 */
export class Election implements AsyncDisposable {
  readonly name: string;
  readonly #context: LockContext;
  readonly #taker: Taker;
  readonly #leaseMs: number;
  readonly #restMs: number;
  readonly #settings: LockSettings;
  readonly #onStop: () => void;
  readonly #outer: AbortSignal | undefined;
  readonly #over = new AbortController();
  readonly #grace: Grace;
  readonly #stopNow = (): void => void this.stop();
  #candidacy: Candidacy | undefined;
  #term: Taken | undefined;
  /** What runs under the term, with `lead`. */
  #serving: Promise<unknown> | undefined;
  #leads = false;
  #stopping: Promise<void> | undefined;

  constructor(context: LockContext, taker: Taker, name: string, options: ElectionOptions, onStop: () => void) {
    const { lease, rest = "1s", signal, ...others } = checkOptions(options, ELECTION_OPTIONS);
    checkSignal(signal);
    this.name = name;
    this.#context = context;
    this.#taker = taker;
    this.#leaseMs = lockLeaseMs(lease);
    this.#restMs = parseDuration(rest, "rest");
    this.#settings = parseSessionLockOptions(others);
    this.#onStop = onStop;
    this.#grace = new Grace(context.clock);
    this.#outer = signal;
    signal?.addEventListener("abort", this.#stopNow);
    if (signal?.aborted === true) this.#stopNow();
  }

  /** Whether this process leads, for certain, at this moment. */
  get leading(): boolean {
    return (this.#term?.held.leftMs ?? 0) > 0;
  }

  /**
   * Waits until this process leads. What it resolves with is the term: its signal fires when the lead is lost. It rejects
   * with the reason of a signal, an `AbortError`, when `resign` or `stop` ends the candidacy.
   */
  async campaign(): Promise<HeldLock> {
    return (await this.#campaign()).held;
  }

  /**
   * Runs a function for as long as this process leads, in each of its terms, until `stop`. A term ends when the function does,
   * and is then given up; when the lead is lost, the function's signal fires. Then it campaigns again.
   */
  async lead(work: (term: HeldLock) => unknown): Promise<void> {
    checkFunction(work, "work", "runs while this process leads");
    if (this.#leads) throw new InvalidInput("lead", this.name, "one lead() of an election at a time");
    this.#leads = true;
    // Also while it leads: a leader may have nothing to do but to wait.
    using _alive = keepAlive();
    try {
      while (!this.#over.signal.aborted) {
        const lost = await this.#leadOnce(work);
        if (!lost) await waitFor(this.#context.clock, this.#restMs, this.#over.signal);
      }
      await this.#stopping;
    } finally {
      this.#leads = false;
    }
  }

  /** Gives up the lead, or the candidacy. The next candidate leads at once; with `lead`, as soon as its function has ended. */
  async resign(): Promise<void> {
    await this.#giveUp("it was resigned");
  }

  /** Who leads now. Undefined: nobody. */
  async leader(): Promise<Leader | undefined> {
    const report = await this.#context.locks.read(this.name);
    return this.#leaderOf(report?.holders[0]);
  }

  /** Who leads, now and after every change, until `stop` or the signal. Undefined: nobody. Needs no candidacy. */
  async *observe(options: ObserveOptions = {}): AsyncGenerator<Leader | undefined, void, undefined> {
    const { signal } = checkOptions(options, OBSERVE_OPTIONS);
    checkSignal(signal);
    const end = signal === undefined ? this.#over.signal : AbortSignal.any([signal, this.#over.signal]);
    for await (const holder of observeHolder(this.#context, this.name, end)) yield this.#leaderOf(holder);
  }

  /**
   * Resigns for good, and ends everything that waits or looks on here. A function that leads has `grace` to end; a second call can
   * only shorten it.
   */
  stop(options: CloseOptions = {}): Promise<void> {
    this.#grace.shorten(parseGrace(options));
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<void> {
    this.#over.abort();
    this.#outer?.removeEventListener("abort", this.#stopNow);
    await this.#giveUp("it was stopped");
    if (this.#serving !== undefined) await this.#grace.wait(this.#serving);
    this.#onStop();
  }

  async #giveUp(why: string): Promise<void> {
    const candidacy = this.#candidacy;
    candidacy?.giveUp.abort();
    await candidacy?.elected.catch(() => undefined);
    const term = this.#term;
    if (term === undefined) return;
    term.held.abort(new BatonError("STOPPING", `The lead in ${show(this.name)} is to be given up: ${why}. Stop.`));
    // What leads must have ended before another may lead, and lets go then. It may be what asks: nobody waits for it here.
    if (this.#serving !== undefined) return;
    await term.held[Symbol.asyncDispose]();
    this.#endTerm(term);
  }

  /** True: the lead was lost, and is to be won back without a rest. */
  async #leadOnce(work: (term: HeldLock) => unknown): Promise<boolean> {
    let term: Taken | undefined;
    try {
      term = await this.#campaign();
      const { session, held } = term;
      // Resigned between the election and this line.
      held.check();
      const run = session.run(held, work);
      this.#serving = run.catch(() => undefined);
      await run;
      return false;
    } catch (error) {
      // What the function throws is its own affair; a candidacy that cannot succeed is told.
      const isHopeless = isLasting(error) && !(error instanceof Closed && this.#over.signal.aborted);
      if (term === undefined && isHopeless) throw error;
      const lost = term?.held.lost === true;
      const asked = term === undefined ? isAbort(error) : term.held.signal.aborted;
      if (!asked) this.#tell(term === undefined, error);
      return lost;
    } finally {
      this.#serving = undefined;
      if (term !== undefined) this.#endTerm(term);
    }
  }

  /** A store that is away is told with measure; each failure of the function that leads is news. */
  #tell(isOfStore: boolean, error: unknown): void {
    if (isOfStore) this.#context.outages.failed(`campaigning for ${this.name}`, error);
    else this.#context.emit({ type: "trouble", doing: `leading ${this.name}`, error, failures: 1, forMs: 0 });
  }

  async #campaign(): Promise<Taken> {
    this.#over.signal.throwIfAborted();
    if (this.#term !== undefined && this.leading) return this.#term;
    this.#candidacy ??= this.#stand();
    return await this.#candidacy.elected;
  }

  #stand(): Candidacy {
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const elected = this.#taker
      .take(this.name, this.#leaseMs, { ...this.#settings, signal })
      .then(async (taken) => {
        // Elected and resigned at the same moment: the resignation counts.
        if (signal.aborted) await taken.held[Symbol.asyncDispose]();
        signal.throwIfAborted();
        this.#begin(taken);
        return taken;
      })
      .finally(() => (this.#candidacy = undefined));
    return { giveUp, elected };
  }

  #begin(term: Taken): void {
    const { held } = term;
    this.#term = term;
    this.#context.outages.worked(`campaigning for ${this.name}`);
    this.#context.emit({ type: "elected", election: this.name, fence: held.fence });
    held.signal.addEventListener("abort", () => {
      if (held.lost) this.#endTerm(term);
    });
  }

  #endTerm(term: Taken): void {
    if (this.#term !== term) return;
    this.#term = undefined;
    const { fence, lost } = term.held;
    this.#context.emit({ type: "deposed", election: this.name, fence, why: lost ? "lost" : "resigned" });
  }

  #leaderOf(holder: HolderReport | undefined): Leader | undefined {
    return holder === undefined ? undefined : { ...holder, me: this.#taker.owns(holder.session) };
  }
}

function isAbort(error: unknown): boolean {
  return isError(error) && error.name === "AbortError";
}
