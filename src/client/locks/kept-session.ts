import { type Duration, parseDuration } from "../../domain/duration.ts";
import { BatonError, LockLost, OutcomeUnknown, SessionLost, show } from "../../domain/errors.ts";
import { checkOptions, type OptionNames } from "../../domain/options.ts";
import type { AcquireRequest, LockHold, Session, SessionRequest } from "../../locks/port.ts";
import type { LockContext } from "./context.ts";
import { Heartbeat, type Loss } from "./heartbeat.ts";
import { type HeldLock, Hold, type HoldKeeper } from "./hold.ts";
import { type BusyReason, LockBusy } from "./lock-busy.ts";
import {
  checkLockName,
  checkWork,
  type LockSettings,
  parseSessionLockOptions,
  type SessionLockOptions,
} from "./options.ts";
import { atMost, Grace, keepAlive, Patience, UNANSWERED_MS, until, waitFor } from "./patience.ts";

export interface CloseOptions {
  /** How long functions that run under a lock may go on after their signal has fired. Default 20s. */
  readonly grace?: Duration | undefined;
}

const CLOSE_OPTIONS: OptionNames<CloseOptions> = { grace: true };

/** How long a function may go on, in milliseconds. */
export function parseGrace(options: CloseOptions): number {
  return parseDuration(checkOptions(options, CLOSE_OPTIONS).grace ?? "20s", "grace");
}

/** A life of its own for locks that belong together. `await using` closes it. */
export interface LockSession extends AsyncDisposable {
  readonly id: string;
  readonly owner: string;
  /** Fires, with `SessionLost`, when the session is over: lost, or closed. */
  readonly signal: AbortSignal;
  /** Milliseconds for which everything under it is certain without a further sign of life. */
  readonly leftMs: number;
  /** Acquires a lock under this session. See `baton.lock`. */
  lock(name: string, options?: SessionLockOptions): Promise<HeldLock>;
  /** Runs a function under a lock of this session. See `baton.withLock`. */
  withLock<T>(name: string, work: (lock: HeldLock) => T, options?: SessionLockOptions): Promise<Awaited<T>>;
  /**
   * Frees everything under it at once, after functions that run under its locks have ended. A second call can only shorten their
   * grace.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** A store that is away must not keep a process from ending. */
const CLOSE_MS = 1_500;
/** So often in the time of a lease. */
const RELEASE_TRIES = 12;

const WHY: Readonly<Record<Loss, string>> = {
  expired: "its time ran out before a sign of life got through",
  ended: "the store no longer has it",
};
const CLOSED = "it was closed";
export const OPENING = "opening a session of locks";
const SIGN = "giving a sign of life";

/**
 * The life that locks hang on: one sign of life keeps them all, and one loss ends them all.
 *
 *   open ──its time ran out, or the store says so──▶ lost (every signal under it fires)
 *     └────close()──▶ closed (everything under it is free at once)
 */
export class KeptSession implements LockSession, HoldKeeper {
  readonly #context: LockContext;
  readonly #session: Session;
  readonly #heartbeat: Heartbeat;
  readonly #holds = new Map<Hold, LockHold>();
  /** Functions that run under a lock: it is not to be freed before they have ended. */
  readonly #running = new Map<Hold, Promise<unknown>>();
  readonly #waits = new Map<Patience, Promise<unknown>>();
  readonly #controller = new AbortController();
  readonly #grace: Grace;
  readonly #onEnd: (session: KeptSession) => void;
  readonly #shared: boolean;
  #over: SessionLost | undefined;
  #used = true;
  #retired = false;
  #closing: Promise<void> | undefined;

  private constructor(context: LockContext, session: Session, shared: boolean, onEnd: (session: KeptSession) => void) {
    this.#context = context;
    this.#session = session;
    this.#shared = shared;
    this.#onEnd = onEnd;
    this.#grace = new Grace(context.clock);
    this.#heartbeat = new Heartbeat(
      { leaseMs: session.leaseMs, since: session.since, renew: () => context.locks.renewSession(session) },
      context.clock,
      {
        lost: (loss) => this.#lose(loss),
        stalled: (stall) => context.emit({ type: "session-stalled", ...stall, locks: this.#names() }),
        trouble: (error) => this.trouble(SIGN, error),
        answered: () => context.outages.worked(SIGN),
        wanted: () => this.#wanted(),
      },
    );
  }

  /** `shared`: nobody holds on to it, so it closes by itself when it was of no use for a while. */
  static async open(
    context: LockContext,
    request: SessionRequest,
    { shared, onEnd }: { readonly shared: boolean; readonly onEnd: (session: KeptSession) => void },
  ): Promise<KeptSession> {
    using _alive = keepAlive();
    const session = await context.locks.openSession(request);
    context.outages.worked(OPENING);
    return new KeptSession(context, session, shared, onEnd);
  }

  get id(): string {
    return this.#session.id;
  }

  get owner(): string {
    return this.#session.owner;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leftMs(): number {
    return this.#heartbeat.leftMs;
  }

  /** Whether something new may hang on it. */
  get usable(): boolean {
    return !this.#retired && this.#closing === undefined && this.#heartbeat.check();
  }

  async lock(name: string, options: SessionLockOptions = {}): Promise<HeldLock> {
    return await this.acquire(checkLockName(name), parseSessionLockOptions(options));
  }

  async withLock<T>(name: string, work: (lock: HeldLock) => T, options: SessionLockOptions = {}): Promise<Awaited<T>> {
    checkWork(work);
    return await this.run(await this.acquire(checkLockName(name), parseSessionLockOptions(options)), work);
  }

  close(options: CloseOptions = {}): Promise<void> {
    this.#grace.shorten(parseGrace(options));
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async acquire(name: string, settings: LockSettings): Promise<Hold> {
    settings.signal?.throwIfAborted();
    this.#assertOpen();
    const { clock, emit } = this.#context;
    using patience = new Patience(clock, settings.waitMs, settings.signal);
    const { slots, delayAfterLossMs, data } = settings;
    const request = { session: this.#session, name, slots, delayAfterLossMs, signal: patience.signal };
    const startedAt = clock.monotonic();
    const taking = this.#take(data === undefined ? request : { ...request, data });
    this.#waits.set(patience, taking);
    this.#used = true;
    try {
      const taken = await taking;
      if (taken instanceof Hold) {
        // It came together with the signal: whoever gave up may not be there any more to let go of it.
        if (settings.signal?.aborted === true) await taken[Symbol.asyncDispose]();
        settings.signal?.throwIfAborted();
        emit({ type: "locked", lock: name, fence: taken.fence, waitedMs: Math.round(clock.monotonic() - startedAt) });
        return taken;
      }
      settings.signal?.throwIfAborted();
      throw new LockBusy(name, taken, await this.#context.locks.read(name).catch(() => undefined));
    } catch (error) {
      // It may be held without our knowing, and must not be kept by our signs of life for ever.
      if (error instanceof OutcomeUnknown) this.#retire();
      throw error;
    } finally {
      this.#waits.delete(patience);
      this.#closeIfRetired();
    }
  }

  /** Runs a function while the lock is held. What it returns counts only if the lock was certain until then. */
  async run<T>(held: Hold, work: (lock: HeldLock) => T): Promise<Awaited<T>> {
    const running = runAndRelease(held, work);
    this.#running.set(held, running);
    try {
      return await running;
    } finally {
      this.#running.delete(held);
    }
  }

  check(): boolean {
    return this.#heartbeat.check();
  }

  /** Tried for as long as the hold could last: what is not let go keeps others out for as long as this session lives. */
  async release(held: Hold, retireMs: number | undefined): Promise<boolean> {
    const { locks, clock, emit, outages } = this.#context;
    const hold = this.#holds.get(held);
    if (hold === undefined) return false;
    using _alive = keepAlive();
    try {
      for (let tries = 1; ; tries += 1) {
        try {
          const request = retireMs === undefined ? { hold } : { hold, retireMs };
          // When the session is over so is the hold, whatever a store that is away would say.
          const answer = await until(locks.release(request), this.#controller.signal);
          if (answer !== undefined) outages.worked(`releasing lock ${held.name}`);
          const released = answer ?? false;
          if (released) emit({ type: "unlocked", lock: held.name, fence: held.fence });
          return released;
        } catch (error) {
          if (tries === RELEASE_TRIES) throw error;
          this.trouble(`releasing lock ${held.name}`, error);
          await waitFor(clock, this.#session.leaseMs / RELEASE_TRIES);
          if (this.#over !== undefined) return false;
        }
      }
    } catch (error) {
      this.#retire();
      throw error;
    } finally {
      this.#holds.delete(held);
      this.#closeIfRetired();
    }
  }

  trouble(doing: string, error: unknown): void {
    this.#context.outages.failed(doing, error);
  }

  async #take(request: AcquireRequest): Promise<Hold | BusyReason> {
    const { locks, emit, outages } = this.#context;
    let isGone = false;
    let hear = (): void => void (isGone = true);
    const lost = (): void => hear();
    const foreign = (found: readonly string[]): void => emit({ type: "lock-foreign", lock: request.name, found });
    const result = await locks.acquire({ ...request, lost, foreign }).catch((error: unknown) => {
      // The store says so: nothing else is to hang on this session.
      if (error instanceof SessionLost) this.#heartbeat.lose("ended");
      throw error;
    });
    if (!result.ok) {
      // The end of a session ends its waits, too; that is no refusal.
      this.#assertOpen();
      return result.why;
    }
    const { hold } = result;
    const { name, fence } = hold;
    outages.worked(`acquiring lock ${name}`);
    try {
      this.#heartbeat.check();
      this.#assertOpen();
    } catch (error) {
      // Nobody is given a lock that is not certain. If this does not get through, it runs out with the session.
      locks.release({ hold }).catch(() => undefined);
      throw error;
    }
    const held = new Hold(name, fence, this, (why) => new LockLost(name, fence, why));
    this.#holds.set(held, hold);
    if (hold.foreign !== undefined) foreign(hold.foreign);
    hear = () => this.#loseOne(held);
    if (isGone) hear();
    return held;
  }

  #assertOpen(): void {
    if (this.#over !== undefined) throw this.#over;
    if (this.#closing !== undefined) throw new SessionLost(this.owner, CLOSED);
  }

  /** Asked at each beat. A shared session that was of no use since the last one is not worth another. */
  #wanted(): boolean {
    const wanted = !this.#shared || this.#used || this.#holds.size > 0 || this.#waits.size > 0;
    this.#used = false;
    if (!wanted) void this.close();
    return wanted;
  }

  /** Nothing new hangs on a shared session that may hold more than we know; it ends when the rest is done. */
  #retire(): void {
    this.#retired = this.#shared;
  }

  #closeIfRetired(): void {
    if (this.#retired && this.#holds.size === 0 && this.#waits.size === 0) void this.close();
  }

  async #close(): Promise<void> {
    const { locks, clock } = this.#context;
    using _alive = keepAlive();
    for (const patience of this.#waits.keys()) patience.end();
    for (const held of this.#running.keys()) held.abort(stopping(held.name));
    await Promise.all([
      atMost(clock, UNANSWERED_MS, Promise.allSettled(this.#waits.values())),
      this.#grace.wait(Promise.allSettled(this.#running.values())),
    ]);
    if (this.#over !== undefined) return;
    // What still runs must not be overtaken: it keeps its lock until that runs out. The others are free now.
    const abandoned = this.#running.size > 0;
    const others = Array.from(this.#holds.keys()).filter((held) => !this.#running.has(held));
    if (abandoned) await Promise.allSettled(others.map((held) => held.release()));
    this.#heartbeat.stop();
    this.#end(new SessionLost(this.owner, CLOSED), "its session was closed");
    if (abandoned) return;
    const closing = locks.closeSession(this.#session).catch((error: unknown) => {
      this.trouble("closing a session of locks; what it holds is free when its lease has run out", error);
    });
    await atMost(clock, CLOSE_MS, closing);
  }

  /** The store no longer has this hold. Its session may be over as well, which only a sign of life tells. */
  #loseOne(held: Hold): void {
    if (!this.#holds.has(held)) return;
    // Whoever opened a session put its locks together because they depend on each other.
    if (!this.#shared) return this.#heartbeat.lose("ended");
    this.#holds.delete(held);
    held.lose(WHY.ended);
    this.#context.emit({ type: "lock-lost", lock: held.name, fence: held.fence });
    this.#heartbeat.renewNow();
    this.#closeIfRetired();
  }

  #lose(loss: Loss): void {
    const locks = this.#names();
    this.#end(new SessionLost(this.owner, WHY[loss]), WHY[loss]);
    this.#context.emit({ type: "session-lost", owner: this.owner, why: loss, locks });
  }

  #end(reason: SessionLost, why: string): void {
    this.#over = reason;
    this.#onEnd(this);
    for (const held of this.#holds.keys()) held.lose(why);
    this.#holds.clear();
    for (const patience of this.#waits.keys()) patience.end();
    this.#controller.abort(reason);
  }

  #names(): readonly string[] {
    return Array.from(this.#holds.keys(), ({ name }) => name);
  }
}

async function runAndRelease<T>(held: Hold, work: (lock: HeldLock) => T): Promise<Awaited<T>> {
  await using lock = held;
  const result = await work(lock);
  await lock.releaseAfterWork();
  return result;
}

function stopping(name: string): BatonError {
  return new BatonError(
    "STOPPING",
    `Lock ${show(name)} is to be let go: its session is closing. Stop; it is free when you have.`,
  );
}
