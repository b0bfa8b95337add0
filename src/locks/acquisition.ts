import { type Clock, elapsedMs } from "../domain/clock.ts";
import { InvalidInput, SessionLost } from "../domain/errors.ts";
import { Bell } from "./bell.ts";
import { Delays } from "./delays.ts";
import { type LockCells, type Seen, UNSEEN } from "./lock-cells.ts";
import { Lookout } from "./lookout.ts";
import { isOutage, OUTAGE_PAUSE_MS } from "./outage.ts";
import type { AcquireRequest, AcquireResult, LockHold } from "./port.ts";
import {
  ahead,
  bury,
  closedSlots,
  everyone,
  forgetData,
  type Holder,
  holderOf,
  join,
  leave,
  leavesData,
  type LockRecord,
  refusal,
  type Waiter,
} from "./rules.ts";
import type { OwnSession, Sessions, Trace } from "./sessions.ts";

const NOBODY: ReadonlySet<string> = new Set();

/** What a hold needs to be found again: the handle behind the port's `LockHold`. */
export class OwnHold {
  readonly nonce: string;
  readonly trace: Trace;
  /** The record as it was when the hold was granted: most are released with nobody having come by. */
  readonly granted: Seen;
  /** A release was asked for, and nobody knows whether it took. */
  isLeaving = false;

  constructor(nonce: string, trace: Trace, granted: Seen) {
    this.nonce = nonce;
    this.trace = trace;
    this.granted = granted;
  }
}

/** Of one who has nothing but to wait. */
interface Outlook {
  /** In the record; those beyond the most it keeps are not. */
  readonly hasPlace: boolean;
  /** When to look even if nobody tells it to. */
  readonly againMs: number;
}

export interface AcquisitionParts {
  readonly cells: LockCells;
  readonly sessions: Sessions;
  readonly clock: Clock;
  /** Fires when the connection closes. */
  readonly closing: AbortSignal;
}

/**
 * One call of `acquire`:
 *
 *   try ──free──▶ holding
 *    └──taken──▶ refused, when the signal has fired
 *         └────▶ in line ──granted──▶ holding
 *                   ├──signal──▶ out of the line, or holding when it was granted just then
 *                   └──session over──▶ out of the line, and an error
 */
export class Acquisition {
  readonly #parts: AcquisitionParts;
  readonly #request: AcquireRequest;
  readonly #session: OwnSession;
  readonly #waiter: Waiter;
  readonly #trace: Trace;
  readonly #delays: Delays;
  readonly #lookout: Lookout;

  constructor(parts: AcquisitionParts, request: AcquireRequest, session: OwnSession, nonce: string) {
    this.#parts = parts;
    this.#request = request;
    this.#session = session;
    this.#waiter = {
      nonce,
      session: session.id,
      owner: session.owner,
      leaseMs: session.leaseMs,
      delayMs: request.delayAfterLossMs,
      expiry: session.expiry,
      ...(request.data === undefined ? {} : { data: request.data }),
    };
    this.#trace = { lock: request.name, isUsed: true, doubtedAt: undefined, retireMs: undefined };
    this.#delays = new Delays(parts.clock);
    this.#lookout = new Lookout(parts.sessions, parts.clock);
  }

  async run(): Promise<AcquireResult> {
    const { traces } = this.#session;
    traces.set(this.#waiter.nonce, this.#trace);
    let isHeld = false;
    try {
      const result = await this.#acquire();
      isHeld = result.ok;
      return result;
    } catch (error) {
      this.#doubt();
      throw error;
    } finally {
      this.#trace.isUsed = isHeld;
      // A write whose reply was lost may still arrive: whoever renews the session looks after it.
      if (!isHeld && this.#trace.doubtedAt === undefined) traces.delete(this.#waiter.nonce);
    }
  }

  async #acquire(): Promise<AcquireResult> {
    const { delayAfterLossMs } = this.#request;
    if (delayAfterLossMs > this.#session.delayMs) {
      this.#session.delayMs = delayAfterLossMs;
      await this.#parts.sessions.writeDelay(this.#session);
    }
    const known = this.#isGivenUp() ? undefined : this.#parts.cells.remembered(this.#request.name);
    if (known !== undefined) return await this.#wait(known);
    const seen = await this.#try();
    if (this.#isHolding(seen)) return await this.#granted(seen);
    return this.#isGivenUp() ? this.#refused(seen) : await this.#wait(seen);
  }

  /** Takes a slot if one is free now. Those who seem to be in the way must live; one who waits sees to that from its place in line. */
  async #try(): Promise<Seen> {
    let dead = NOBODY;
    let spent = NOBODY;
    let seen = UNSEEN;
    for (;;) {
      seen = await this.#change(seen, (record) => {
        const moment = this.#delays.now();
        const rest = record && bury(record, dead, moment, spent);
        const joined = join(rest, this.#waiter, this.#request.slots, moment);
        return holderOf(joined, this.#waiter.nonce) === undefined ? rest : joined;
      });
      if (this.#isHolding(seen) || !this.#isGivenUp()) return seen;
      const found = await this.#deadInTheWay(seen.record);
      if (found.size === 0) return seen;
      dead = found;
      spent = await this.#parts.sessions.findSpent(seen.record?.holders ?? [], dead);
    }
  }

  /** Looks at sessions, first come first, until as many live as there are slots. */
  async #deadInTheWay(record: LockRecord | undefined): Promise<ReadonlySet<string>> {
    if (record === undefined) return NOBODY;
    const dead = new Set<string>();
    const isAgreed = record.slots === this.#request.slots;
    let taken = isAgreed ? closedSlots(record, this.#delays.now()) : 0;
    for (const { session } of everyone(record)) {
      if (taken >= (isAgreed ? record.slots : 1)) break;
      if (session !== this.#session.id && (await this.#parts.sessions.read(session)) === undefined) dead.add(session);
      else taken += 1;
    }
    if (!isAgreed && taken > 0) {
      const { slots } = record;
      throw new InvalidInput("slots", this.#request.slots, `${slots}, which those who use the lock now have said`);
    }
    return dead;
  }

  async #wait(known: Seen): Promise<AcquireResult> {
    const { clock, closing, cells } = this.#parts;
    const bell = new Bell(clock);
    const signals = [this.#request.signal, this.#session.over.signal, closing];
    for (const signal of signals) signal.addEventListener("abort", bell.ring);
    let ear: { stop(): void } | undefined;
    let watch: { stop(): void } | undefined;
    let from: Seen | undefined = known;
    try {
      for (;;) {
        try {
          // Whoever listens before it takes its place misses nothing. What was read before holds only if the store says so.
          ear ??= await cells.listen(this.#waiter.nonce, bell.ring);
          const begin = from;
          from = undefined;
          const found = await this.#look(begin);
          if ("ok" in found) return found;
          if (found.hasPlace) {
            watch?.stop();
            watch = undefined;
          } else if (watch === undefined) {
            // Nobody can tell one who is not in the record, so it hears of every change; and looks once more, because of those before.
            watch = await cells.watch(this.#request.name, bell.ring);
            continue;
          }
          const leftMs = this.#session.leaseMs - elapsedMs(clock, this.#session.since);
          await bell.next(Math.min(found.againMs, Math.max(leftMs, 0)));
        } catch (error) {
          if (!isOutage(error) || this.#isGivenUp()) throw error;
          await bell.next(OUTAGE_PAUSE_MS);
        }
      }
    } finally {
      ear?.stop();
      watch?.stop();
      for (const signal of signals) signal.removeEventListener("abort", bell.ring);
    }
  }

  /** Takes its place and what is due to it, and looks after who is ahead. */
  async #look(from: Seen | undefined): Promise<AcquireResult | Outlook> {
    let seen = from;
    let dead = NOBODY;
    let spent = NOBODY;
    for (;;) {
      if (this.#isGivenUp() || !this.#isAlive()) return await this.#giveUp();
      let moment = this.#delays.now();
      seen = await this.#change(seen, (record) => {
        moment = this.#delays.now();
        return join(record && bury(record, dead, moment, spent), this.#waiter, this.#request.slots, moment);
      });
      if (this.#isHolding(seen)) return await this.#granted(seen);
      if (seen.record?.slots !== this.#request.slots) dead = await this.#deadInTheWay(seen.record);
      else dead = await this.#lookout.findDead(ahead(seen.record, this.#waiter.nonce));
      spent = await this.#parts.sessions.findSpent(seen.record?.holders ?? [], dead);
      if (dead.size > 0) continue;
      const hasPlace = everyone(seen.record).some(({ nonce }) => nonce === this.#waiter.nonce);
      return { hasPlace, againMs: Math.min(this.#lookout.nextMs(), moment.nextMs(seen.record)) };
    }
  }

  /** Out of the line; unless it was granted just then. */
  async #giveUp(): Promise<AcquireResult> {
    const { nonce } = this.#waiter;
    try {
      const seen = await this.#change(undefined, (record) =>
        this.#isAlive() && holderOf(record, nonce) !== undefined ? record : leave(record, nonce, this.#delays.now()),
      );
      if (this.#isAlive()) return this.#result(seen) ?? this.#refused(seen);
    } catch (error) {
      if (this.#isAlive()) throw error;
    }
    throw this.#session.lost ?? new SessionLost(this.#session.owner, "it was not renewed in time");
  }

  #change(from: Seen | undefined, step: (record: LockRecord | undefined) => LockRecord | undefined): Promise<Seen> {
    return this.#parts.cells.change(this.#request.name, from, step, () => this.#doubt());
  }

  #doubt(): void {
    this.#trace.doubtedAt = this.#parts.clock.monotonic();
  }

  #result(seen: Seen): AcquireResult | undefined {
    const holder = holderOf(seen.record, this.#waiter.nonce);
    return holder && { ok: true, hold: this.#hold(holder, seen) };
  }

  #hold({ fence, nonce }: Holder, seen: Seen): LockHold {
    const { name, session } = this.#request;
    return { name, fence, session, handle: new OwnHold(nonce, this.#trace, seen) };
  }

  #isHolding({ record }: Seen): boolean {
    return holderOf(record, this.#waiter.nonce) !== undefined;
  }

  /** A grant that arrived when the session was over is none. */
  async #granted(seen: Seen): Promise<AcquireResult> {
    const after = await this.#forgetDead(seen);
    return (this.#isAlive() ? this.#result(after) : undefined) ?? (await this.#giveUp());
  }

  /** With several slots one may be granted while a dead holder stands in another. What that one leaves shows only until now. */
  async #forgetDead(seen: Seen): Promise<Seen> {
    const others = seen.record?.holders.filter((one) => one.session !== this.#session.id && leavesData(one)) ?? [];
    if (others.length === 0) return seen;
    try {
      const dead = await this.#lookout.findDead(others);
      if (dead.size === 0) return seen;
      const after = await this.#change(seen, (record) => record && forgetData(record, dead));
      // Taken away meanwhile by other means: that is a loss of what was granted, and no refusal.
      return this.#isHolding(after) ? after : seen;
    } catch (error) {
      // The grant is good, whatever is shown.
      if (isOutage(error)) return seen;
      throw error;
    }
  }

  #refused({ record }: Seen): AcquireResult {
    return { ok: false, why: refusal(record, this.#delays.now()) };
  }

  #isGivenUp(): boolean {
    return this.#request.signal.aborted || this.#parts.closing.aborted;
  }

  #isAlive(): boolean {
    if (!this.#session.isCertain(this.#parts.clock)) this.#session.end("it was not renewed in time");
    return this.#session.lost === undefined;
  }
}
