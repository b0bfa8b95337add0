/**
 * Locks in any store that has a register. A lock is one cell, a session is one cell; `rules.ts` says how a lock changes.
 *
 * Why a lock has one holder: a slot is taken away from a holder only by somebody who has read that its session's cell is gone. The store
 * removes that cell no earlier than a lease after the last sign of life arrived, and ids of sessions are never used
 * again; so by then the holder's own deadline, which counts from before that sign was sent, has passed.
 */
import { type Clock, type Instant, systemClock } from "../domain/clock.ts";
import { Closed, InvalidInput } from "../domain/errors.ts";
import { checkOptions, given, type OptionNames } from "../domain/options.ts";
import { LONGEST_LEASE_MS, SHORTEST_LEASE_MS } from "../domain/lease.ts";
import { Acquisition, type AcquisitionParts, OwnHold } from "./acquisition.ts";
import { momentOf } from "./delays.ts";
import { LockCells } from "./lock-cells.ts";
import { Lookout } from "./lookout.ts";
import { followLock } from "./follow-lock.ts";
import { HoldChecks } from "./hold-checks.ts";
import type * as port from "./port.ts";
import type { Register } from "./register.ts";
import { damagedReport, lockReport } from "./reports.ts";
import { checkAcquire, checkLockName, checkRelease, checkSession } from "./requests.ts";
import { everyone, holderOf, leave, type LockRecord } from "./rules.ts";
import { type OwnSession, ownSession, Sessions, type Trace } from "./sessions.ts";
import { tracked } from "./tracked.ts";

export interface LocksOnRegisterOptions {
  /** The name in `docs/locks/`. */
  readonly name: string;
  readonly register: Register;
  readonly clock?: Clock | undefined;
  /** From 0 to 1: spreads those who race for a cell. */
  readonly random?: (() => number) | undefined;
  /** A text that nobody ever made before, of letters, digits, _ and -. */
  readonly newId: () => string;
  /** Where the store keeps less than others do. */
  readonly limits?: Partial<port.LockLimits> | undefined;
  /** Changes of a cell are told at little cost: locks are watched while they are held. If not, each sign of life looks at them. */
  readonly watchesHolds?: boolean | undefined;
}

const LOCKS_OPTIONS: OptionNames<LocksOnRegisterOptions> = {
  name: true,
  register: true,
  clock: true,
  random: true,
  newId: true,
  limits: true,
  watchesHolds: true,
};

const LIMIT_NAMES: OptionNames<port.LockLimits> = {
  shortestLeaseMs: true,
  longestLeaseMs: true,
  leaseAdvice: true,
  longestDelayMs: true,
  mostSlots: true,
  fair: true,
};

const LIMITS: port.LockLimits = {
  shortestLeaseMs: SHORTEST_LEASE_MS,
  longestLeaseMs: LONGEST_LEASE_MS,
  longestDelayMs: 3_600_000,
  // With as many waiters and the longest data, the record stays below the mebibyte that a NATS message may have.
  mostSlots: 128,
  fair: true,
};

/** How long a write whose reply was lost may take to arrive. No driver of ours waits for a reply that long. */
const DOUBT_MS = 60_000;

export function locksOnRegister(options: LocksOnRegisterOptions): port.Locks {
  return new LocksOnRegister(options);
}

class LocksOnRegister implements port.Locks {
  readonly name: string;
  readonly limits: port.LockLimits;
  readonly #register: Register;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #cells: LockCells;
  readonly #sessions: Sessions;
  readonly #holds: HoldChecks;
  readonly #parts: AcquisitionParts;
  readonly #closing = new AbortController();
  /** What `close` waits for. */
  readonly #waiting = new Set<Promise<unknown>>();

  constructor(options: LocksOnRegisterOptions) {
    const {
      name,
      register,
      clock = systemClock,
      random = draw,
      newId,
      limits = {},
      watchesHolds = false,
    } = checkOptions(options, LOCKS_OPTIONS);
    this.name = name;
    this.limits = { ...LIMITS, ...given(checkOptions<Partial<port.LockLimits>>(limits, LIMIT_NAMES, "limits")) };
    this.#register = register;
    this.#clock = clock;
    this.#newId = newId;
    this.#cells = new LockCells(register, clock, random);
    this.#sessions = new Sessions(register, clock);
    this.#holds = new HoldChecks(this.#cells, clock, watchesHolds);
    this.#parts = {
      cells: this.#cells,
      sessions: this.#sessions,
      clock,
      closing: this.#closing.signal,
    };
  }

  async openSession(request: port.SessionRequest): Promise<port.Session> {
    this.#checkOpen();
    checkSession(request, this.limits);
    const session = await this.#sessions.open(this.#newId(), request);
    const { id, owner, leaseMs, since } = session;
    return { id, owner, leaseMs, since, handle: session };
  }

  async renewSession(session: port.Session): Promise<Instant | undefined> {
    this.#checkOpen();
    const own = ownSession(session);
    const since = await this.#sessions.renew(own);
    // Nobody waits for it: the next sign of life tries again.
    if (since !== undefined) {
      void this.#sweep(own).catch(() => undefined);
      void this.#holds.look(own);
    }
    return since;
  }

  async closeSession(session: port.Session): Promise<void> {
    this.#checkOpen();
    const own = ownSession(session);
    own.isClosed = true;
    own.end("it was closed");
    await Promise.allSettled(own.asking);
    for (const nonce of own.traces.keys()) this.#holds.end(own, nonce);
    if (await this.#lives(own)) {
      await Promise.all([...own.traces].map(([nonce, trace]) => this.#leave(nonce, trace)));
      await this.#sessions.remove(own);
    }
    own.traces.clear();
  }

  async acquire(request: port.AcquireRequest): Promise<port.AcquireResult> {
    this.#checkOpen();
    checkAcquire(request, this.limits);
    const session = ownSession(request.session);
    if (session.lost !== undefined) throw session.lost;
    const asked = new Acquisition(this.#parts, request, session, this.#newId()).run();
    const result = await tracked(session.asking, tracked(this.#waiting, asked));
    const { lost } = request;
    if (result.ok && lost !== undefined && result.hold.handle instanceof OwnHold) {
      const { nonce, trace } = result.hold.handle;
      this.#holds.begin(session, nonce, trace, lost);
    }
    return result;
  }

  async release(request: port.ReleaseRequest): Promise<boolean> {
    this.#checkOpen();
    checkRelease(request);
    const { name, handle, session } = request.hold;
    const own = ownSession(session);
    if (!(handle instanceof OwnHold)) throw new InvalidInput("hold", handle, "a hold that this connection has taken");
    const { nonce, trace, granted } = handle;
    this.#holds.end(own, nonce);
    if (own.isClosed || !(await this.#lives(own))) return false;
    trace.retireMs = request.retireMs;
    let isMine = false;
    const step = (record: LockRecord | undefined): LockRecord | undefined => {
      isMine = holderOf(record, nonce) !== undefined;
      return leave(record, nonce, momentOf(this.#clock), request.retireMs);
    };
    const doubt = (): void => {
      handle.isLeaving = true;
      trace.doubtedAt = this.#clock.monotonic();
    };
    try {
      await this.#cells.change(name, granted, step, doubt);
    } catch (error) {
      doubt();
      throw error;
    } finally {
      trace.isUsed = false;
    }
    if (trace.doubtedAt === undefined) own.traces.delete(nonce);
    // While the session lives nobody else takes the hold away: gone after a release without a reply means that it took.
    return isMine || handle.isLeaving;
  }

  async read(name: string): Promise<port.LockReport | undefined> {
    this.#checkOpen();
    const { record } = await this.#cells.read(checkLockName(name));
    const dead = await new Lookout(this.#sessions, this.#clock).findDead(everyone(record));
    const spent = await this.#sessions.findSpent(record?.holders ?? [], dead);
    return lockReport(
      name,
      record,
      { isDead: (id) => dead.has(id), isSpent: (id) => spent.has(id) },
      momentOf(this.#clock),
    );
  }

  async watch(request: port.WatchRequest): Promise<void> {
    this.#checkOpen();
    checkLockName(request.name);
    const signal = AbortSignal.any([request.signal, this.#closing.signal]);
    await tracked(this.#waiting, followLock(this.#parts, request.name, request.changed, signal));
  }

  async list(): Promise<readonly port.LockReport[]> {
    this.#checkOpen();
    // In this order: whoever is seen to hold a lock had a session before.
    const locks = await this.#cells.list();
    const living = await this.#sessions.list();
    const delayed = await this.#sessions.listDelays();
    const moment = momentOf(this.#clock);
    const lives = { isDead: (id: string) => !living.has(id), isSpent: (id: string) => !delayed.has(id) };
    return locks
      .map(({ name, record, damage }) =>
        damage === undefined ? lockReport(name, record, lives, moment) : damagedReport(name, damage),
      )
      .filter((report) => report !== undefined)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async repairs(): Promise<readonly port.LockRepair[]> {
    this.#checkOpen();
    const damaged = (await this.#cells.list()).filter(({ damage }) => damage !== undefined);
    return damaged.map((one) => ({
      subject: `lock ${one.name}`,
      detail: one.damage?.message ?? "",
      action: "removes the record of the lock. It is free then, whoever may hold it: make sure that nobody does.",
      run: async () => {
        await this.#cells.remove(one);
      },
    }));
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await Promise.allSettled(this.#waiting);
    await this.#register.close();
  }

  /** Asks the store only when the clock does not say it. */
  async #lives(session: OwnSession): Promise<boolean> {
    return session.isCertain(this.#clock) || (await this.#sessions.read(session.id)) !== undefined;
  }

  /** Takes away what writes have left behind whose replies were lost. */
  async #sweep(session: OwnSession): Promise<void> {
    for (const [nonce, trace] of session.traces) {
      if (trace.isUsed) continue;
      await this.#leave(nonce, trace);
      if (this.#clock.monotonic() - (trace.doubtedAt ?? 0) > DOUBT_MS) session.traces.delete(nonce);
    }
  }

  async #leave(nonce: string, { lock, retireMs }: Trace): Promise<void> {
    const step = (record: LockRecord | undefined): LockRecord | undefined =>
      leave(record, nonce, momentOf(this.#clock), retireMs);
    await this.#cells.change(lock, undefined, step, () => undefined);
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new Closed();
  }
}

function draw(): number {
  // oxlint-disable-next-line no-restricted-properties -- here randomness comes in from outside
  return Math.random();
}
