import { Closed, isAway, SessionLost } from "../../domain/errors.ts";
import { checkOptions } from "../../domain/options.ts";
import type { LockReport } from "../../locks/port.ts";
import type { LockContext } from "./context.ts";
import { type EachOptions, type EachReport, runEach } from "./each.ts";
import { Election, type ElectionOptions } from "./election.ts";
import type { HeldLock } from "./hold.ts";
import { KeptSession, type LockSession, OPENING } from "./kept-session.ts";
import {
  checkExpiry,
  checkLockName,
  checkOwner,
  checkWork,
  lockLeaseMs,
  type LockOptions,
  type LockSettings,
  parseLockOptions,
  SESSION_OPTIONS,
  type SessionOptions,
} from "./options.ts";
import { answer, atMost, UNANSWERED_MS, waitFor } from "./patience.ts";
import type { Taken, Taker } from "./taker.ts";
import { unanswered } from "./unanswered.ts";

/** Before a wait is begun anew under a new session: a share of the lease, at most so long, so that trouble that stays does not spin. */
const AGAIN_SHARE = 1 / 12;
const LONGEST_AGAIN_MS = 1_000;

/** The locks of one connection. Those with the same lease share a session, so that one sign of life keeps them all. */
export class ConnectionLocks implements Taker {
  readonly #context: LockContext;
  readonly #shared = new Map<number, Promise<KeptSession>>();
  readonly #sessions = new Set<KeptSession>();
  /** Sessions on their way: closing waits for them, to close them too. */
  readonly #openings = new Set<Promise<KeptSession>>();
  readonly #elections = new Set<Election>();
  #closed = false;

  constructor(context: LockContext) {
    this.#context = context;
  }

  async lock(name: string, options: LockOptions): Promise<HeldLock> {
    const { leaseMs, ...settings } = parseLockOptions(options);
    const { held } = await this.take(checkLockName(name), leaseMs, settings);
    return held;
  }

  async withLock<T>(name: string, work: (lock: HeldLock) => T, options: LockOptions): Promise<Awaited<T>> {
    const { leaseMs, ...settings } = parseLockOptions(options);
    checkWork(work);
    const { session, held } = await this.take(checkLockName(name), leaseMs, settings);
    return await session.run(held, work);
  }

  async session(options: SessionOptions): Promise<LockSession> {
    const { lease, expiry = "release", owner } = checkOptions(options, SESSION_OPTIONS);
    return await this.#open(lockLeaseMs(lease), checkExpiry(expiry), checkOwner(owner), false);
  }

  elect(name: string, options: ElectionOptions): Election {
    const election = new Election(this.#context, this, checkLockName(name), options, () =>
      this.#elections.delete(election),
    );
    this.#elections.add(election);
    return election;
  }

  each<T>(
    tasks: Iterable<T> | AsyncIterable<T>,
    work: (task: T, lock: HeldLock) => unknown,
    options: EachOptions<T>,
  ): Promise<EachReport<T>> {
    return runEach(this, tasks, work, options);
  }

  list(): Promise<readonly LockReport[]> {
    return this.#context.locks.list();
  }

  /** Under the shared session of this lease. Whoever gives up is free to go, also when the store does not answer. */
  async take(name: string, leaseMs: number, settings: LockSettings): Promise<Taken> {
    const taking = this.#take(name, leaseMs, settings);
    const taken = await answer(this.#context.clock, settings, taking, ({ held }) => held[Symbol.asyncDispose]());
    if (taken !== undefined) return taken;
    settings.signal?.throwIfAborted();
    throw unanswered(name);
  }

  /** A wait goes on under another session when its own is lost. */
  async #take(name: string, leaseMs: number, settings: LockSettings): Promise<Taken> {
    const { clock } = this.#context;
    const giveUpAt = clock.monotonic() + settings.waitMs;
    const againMs = Math.min(leaseMs * AGAIN_SHARE, LONGEST_AGAIN_MS);
    let isWaiting = false;
    for (;;) {
      const session = await this.#shareAgain(leaseMs, isWaiting);
      if (session === undefined) {
        await waitFor(clock, againMs, settings.signal);
        settings.signal?.throwIfAborted();
        if (clock.monotonic() >= giveUpAt) throw unanswered(name);
        continue;
      }
      isWaiting = settings.waitMs > 0;
      try {
        const waitMs = Math.max(0, giveUpAt - clock.monotonic());
        return { session, held: await session.acquire(name, { ...settings, waitMs }) };
      } catch (error) {
        if (!(error instanceof SessionLost)) throw error;
        if (this.#closed) throw new Closed();
        if (clock.monotonic() >= giveUpAt) throw error;
      }
      await waitFor(clock, againMs, settings.signal);
    }
  }

  owns(sessionId: string): boolean {
    return [...this.#sessions].some(({ id }) => id === sessionId);
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#elections].map((election) => election.stop({ grace: graceMs })));
    await atMost(this.#context.clock, UNANSWERED_MS, Promise.allSettled(this.#openings));
    await Promise.all([...this.#sessions].map((session) => session.close({ grace: graceMs })));
  }

  /** Undefined: the store is away, and whoever waits goes on waiting. */
  async #shareAgain(leaseMs: number, isWaiting: boolean): Promise<KeptSession | undefined> {
    try {
      return await this.#share(leaseMs);
    } catch (error) {
      if (!isWaiting || !isAway(error) || this.#closed) throw error;
      this.#context.outages.failed(OPENING, error);
      return undefined;
    }
  }

  async #share(leaseMs: number): Promise<KeptSession> {
    const known = this.#shared.get(leaseMs);
    if (known !== undefined) {
      const session = await known;
      if (session.usable) return session;
      this.#forget(leaseMs, known);
      return await this.#share(leaseMs);
    }
    const opening = this.#open(leaseMs, "release", checkOwner(), true);
    this.#shared.set(leaseMs, opening);
    // Whoever asked is told; the next one tries anew.
    opening.catch(() => this.#forget(leaseMs, opening));
    return await opening;
  }

  #forget(leaseMs: number, session: Promise<KeptSession>): void {
    if (this.#shared.get(leaseMs) === session) this.#shared.delete(leaseMs);
  }

  async #open(leaseMs: number, expiry: "release" | "delete", owner: string, shared: boolean): Promise<KeptSession> {
    if (this.#closed) throw new Closed();
    const opening = KeptSession.open(
      this.#context,
      { leaseMs, expiry, owner },
      { shared, onEnd: (ended) => this.#sessions.delete(ended) },
    ).then((session) => {
      this.#sessions.add(session);
      return session;
    });
    this.#openings.add(opening);
    try {
      return await opening;
    } finally {
      this.#openings.delete(opening);
    }
  }
}
