/**
 * Locks in Consul.
 *
 * Why a lock has one holder: a slot is a key that Consul lets one session lock. The session runs out no earlier than its TTL after
 * Consul had the last sign of life; by then the holder's own deadline, which counts from before that sign was sent, has passed.
 */
import { randomUUID } from "node:crypto";
import type { Clock, Instant } from "../domain/clock.ts";
import { Closed, InvalidInput } from "../domain/errors.ts";
import type { Finding } from "../engine/port.ts";
import type * as port from "../locks/port.ts";
import { isSameReport } from "../locks/reports.ts";
import { checkAcquire, checkLockName, checkRelease, checkSession } from "../locks/requests.ts";
import { Acquisition, type AcquisitionParts, OwnHold } from "./acquisition.ts";
import { ConsulApi } from "./api.ts";
import { Changes } from "./changes.ts";
import { checkConsul, lockFindings, repairOf } from "./check.ts";
import { HoldWatch } from "./hold-watch.ts";
import { type ConsulHttp, Unanswered } from "./http.ts";
import { waiterKey } from "./lock-keys.ts";
import { LockReader } from "./lock-reader.ts";
import { type Outside, Patience } from "./patience.ts";
import { reportOf, stepsToRelease, stepsToReleaseOnly } from "./rules.ts";
import { type OwnSession, ownSession, Sessions } from "./sessions.ts";
import { tracked } from "../locks/tracked.ts";

/** Consul's own. */
const LONGEST_TTL_MS = 86_400_000;
const LONGEST_LOCK_DELAY_MS = 60_000;
const MOST_SLOTS = 128;
/** How long a write whose reply was lost may take to arrive. */
const DOUBT_MS = 60_000;
/** Keys of locks whose time has passed are removed by whoever retires another one, this seldom. */
const SWEEP_EVERY_MS = 600_000;

export interface ConsulLocksParts extends Outside {
  readonly http: ConsulHttp;
  readonly prefix: string;
  readonly shortestLeaseMs: number;
}

export class ConsulLocks implements port.Locks {
  readonly name = "consul";
  readonly limits: port.LockLimits;
  readonly #http: ConsulHttp;
  readonly #api: ConsulApi;
  readonly #clock: Clock;
  readonly #outside: Outside;
  readonly #sessions: Sessions;
  readonly #reader: LockReader;
  readonly #changes: Changes;
  readonly #holds: HoldWatch;
  readonly #closing = new AbortController();
  /** What `close` waits for. */
  readonly #waiting = new Set<Promise<unknown>>();
  #sweptAt: number;
  /** Locks of which it was said already that others may use them. */
  readonly #told = new Set<string>();

  constructor({ http, prefix, shortestLeaseMs, clock, random }: ConsulLocksParts) {
    this.limits = {
      shortestLeaseMs,
      longestLeaseMs: LONGEST_TTL_MS,
      leaseAdvice:
        "where the servers' session_ttl_min allows a shorter one, add shortest-lease to the store's URL: consul://HOST?shortest-lease=5s",
      longestDelayMs: LONGEST_LOCK_DELAY_MS,
      mostSlots: MOST_SLOTS,
      fair: true,
    };
    this.#http = http;
    this.#api = new ConsulApi(http);
    this.#clock = clock;
    this.#outside = { clock, random };
    this.#sessions = new Sessions(this.#api, this.#outside);
    this.#reader = new LockReader(this.#api, prefix, this.#outside);
    this.#changes = new Changes(this.#api, prefix, this.#outside);
    this.#holds = new HoldWatch(this.#api, prefix);
    this.#sweptAt = clock.monotonic();
  }

  async openSession(request: port.SessionRequest): Promise<port.Session> {
    this.#checkOpen();
    checkSession(request, this.limits);
    const session = await this.#sessions.open(request);
    const { id, owner, leaseMs, since } = session;
    return { id, owner, leaseMs, since, handle: session };
  }

  async renewSession(session: port.Session): Promise<Instant | undefined> {
    this.#checkOpen();
    const own = ownSession(session);
    const since = await this.#sessions.renew(own);
    // Nobody waits for it: the next sign of life tries again.
    if (since !== undefined) void this.#settleDoubts(own).catch(() => undefined);
    return since;
  }

  async closeSession(session: port.Session): Promise<void> {
    this.#checkOpen();
    const own = ownSession(session);
    own.end("it was closed");
    await Promise.allSettled(own.asking);
    for (const { stopWatching } of own.traces.values()) stopWatching?.();
    // Before the session goes: Consul delays what a session still holds when it is destroyed.
    await Promise.all([...own.traces].map(([nonce, { lock }]) => this.#withdraw(lock, nonce)));
    await this.#sessions.destroy(own);
    own.traces.clear();
  }

  async acquire(request: port.AcquireRequest): Promise<port.AcquireResult> {
    this.#checkOpen();
    checkAcquire(request, this.limits);
    const session = ownSession(request.session);
    if (session.lost !== undefined) throw session.lost;
    const parts: AcquisitionParts = {
      api: this.#api,
      reader: this.#reader,
      changes: this.#changes,
      sessions: this.#sessions,
      holds: this.#holds,
      ...this.#outside,
      closing: this.#closing.signal,
    };
    const { name } = request;
    const foreign = (found: readonly string[]): void => {
      if (this.#isNews(name)) request.foreign?.(found);
    };
    const asked = new Acquisition(parts, { ...request, foreign }, session, randomUUID()).run();
    const result = await tracked(session.asking, tracked(this.#waiting, asked));
    if (!result.ok || result.hold.foreign === undefined || this.#isNews(name)) return result;
    const { foreign: _, ...hold } = result.hold;
    return { ok: true, hold };
  }

  async release(request: port.ReleaseRequest): Promise<boolean> {
    this.#checkOpen();
    checkRelease(request);
    const { hold, retireMs } = request;
    const { handle } = hold;
    const session = ownSession(hold.session);
    if (!(handle instanceof OwnHold)) throw new InvalidInput("hold", handle, "a hold that this connection has taken");
    const { nonce, trace } = handle;
    trace.stopWatching?.();
    const retiredUntil = retireMs === undefined ? undefined : this.#clock.wall() + retireMs;
    const isReleased = await this.#release(session, hold, handle, retiredUntil);
    trace.isUsed = false;
    if (trace.doubtedAt === undefined) session.traces.delete(nonce);
    if (isReleased && retireMs !== undefined) this.#sweepNowAndThen();
    return isReleased;
  }

  async read(name: string): Promise<port.LockReport | undefined> {
    this.#checkOpen();
    const state = await this.#reader.readNoting(checkLockName(name));
    return reportOf(state, this.#clock.wall());
  }

  async watch({ name, changed, signal }: port.WatchRequest): Promise<void> {
    this.#checkOpen();
    checkLockName(name);
    await tracked(this.#waiting, this.#follow(name, changed, AbortSignal.any([signal, this.#closing.signal])));
  }

  async list(): Promise<readonly port.LockReport[]> {
    this.#checkOpen();
    const states = await this.#reader.list();
    await Promise.all(states.map((state) => this.#reader.noteLosses(state)));
    await Promise.all(states.map((state) => this.#reader.sweep(state)));
    const now = this.#clock.wall();
    return states
      .map((state) => reportOf(state, now))
      .filter((report) => report !== undefined)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async check(): Promise<readonly Finding[]> {
    this.#checkOpen();
    const servers = await checkConsul(this.#api, this.#outside);
    // Without a leader there is no answer.
    if (servers.some(({ severity }) => severity === "error")) return servers;
    return [...servers, ...lockFindings(await this.#reader.list())];
  }

  async repairs(): Promise<readonly port.LockRepair[]> {
    this.#checkOpen();
    const states = await this.#reader.list();
    return states.flatMap((state) => {
      const repair = repairOf(state);
      return repair === undefined ? [] : [{ ...repair, run: () => this.#reader.repair(state) }];
    });
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await Promise.allSettled(this.#waiting);
    await this.#http.close();
  }

  /** That others may use the lock is said once: a warning with each of a thousand acquisitions would be no help. */
  #isNews(name: string): boolean {
    if (this.#told.has(name)) return false;
    this.#told.add(name);
    return true;
  }

  async #release(
    session: OwnSession,
    { name, fence }: port.LockHold,
    { nonce, slots, trace }: OwnHold,
    retiredUntil: number | undefined,
  ): Promise<boolean> {
    const lock = this.#reader.lockOf(name);
    const patience = new Patience(this.#outside, `the release of ${name}`);
    // Most are released with nobody having come by.
    let steps = slots === 1 ? stepsToReleaseOnly(lock, fence, retiredUntil) : undefined;
    let isUnsure = false;
    for (;;) {
      if (steps === undefined) {
        const state = await this.#reader.read(name);
        steps = stepsToRelease(lock, state, nonce, retiredUntil, this.#clock.wall());
        // While the session lives nobody else takes the hold away: gone after a lost reply means that the reply was yes.
        if (steps === undefined) return isUnsure && (await this.#sessions.exists(session));
      }
      try {
        if ((await this.#api.commit(steps)).ok) return true;
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error;
        if (error.isDoubtful) {
          isUnsure = true;
          trace.doubtedAt = this.#clock.monotonic();
        }
        await patience.pause(error);
      }
      steps = undefined;
    }
  }

  async #follow(
    name: string,
    changed: (report: port.LockReport | undefined) => void,
    signal: AbortSignal,
  ): Promise<void> {
    let last: { readonly report: port.LockReport | undefined } | undefined;
    let state = await this.#reader.readNoting(name);
    while (!signal.aborted) {
      const now = this.#clock.wall();
      const report = reportOf(state, now);
      if (last === undefined || !isSameReport(last.report, report)) changed(report);
      last = { report };
      const times = [report?.delayedUntil, report?.retiredUntil].filter((time) => time !== undefined);
      const before = state;
      state = await this.#changes.next(state, Math.min(Infinity, ...times) - now, signal);
      if (state !== before && (await this.#reader.noteLosses(state))) state = await this.#reader.read(name);
    }
  }

  /** Takes away what writes have left behind whose replies were lost. */
  async #settleDoubts(session: OwnSession): Promise<void> {
    for (const [nonce, trace] of session.traces) {
      if (trace.isUsed) continue;
      await this.#withdraw(trace.lock, nonce);
      if (this.#clock.monotonic() - (trace.doubtedAt ?? 0) > DOUBT_MS) session.traces.delete(nonce);
    }
  }

  /** Out of the slot and out of the line. */
  async #withdraw(name: string, nonce: string): Promise<void> {
    const lock = this.#reader.lockOf(name);
    const patience = new Patience(this.#outside, `the release of ${name}`);
    for (;;) {
      const state = await this.#reader.read(name);
      const steps = [
        ...(stepsToRelease(lock, state, nonce, undefined, this.#clock.wall()) ?? []),
        ...state.waiters
          .filter((one) => one.nonce === nonce)
          .map(() => ({ verb: "delete", key: waiterKey(lock, nonce) }) as const),
      ];
      if (steps.length === 0) return;
      try {
        await this.#api.commit(steps);
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error;
        await patience.pause(error);
      }
    }
  }

  #sweepNowAndThen(): void {
    const now = this.#clock.monotonic();
    if (now - this.#sweptAt < SWEEP_EVERY_MS) return;
    this.#sweptAt = now;
    void this.list().catch(() => undefined);
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new Closed();
  }
}
