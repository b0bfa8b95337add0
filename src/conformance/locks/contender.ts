import { type Instant, pause, systemClock } from "../../domain/clock.ts";
import type { AcquireRequest, AcquireResult, LockHold, Locks, LockReport, Session } from "../../locks/port.ts";
import { equal, NotConforming } from "../expect.ts";

/** Within one lease. More than a client needs, because a busy machine is late, and the case is about the store. */
const RENEWALS = 10;

export type LockWish = Partial<Omit<AcquireRequest, "session" | "name">>;

/** A call that waits, and what ends it. */
export interface Waiting {
  readonly answer: Promise<AcquireResult>;
  /** The hold that the case counts on. */
  readonly hold: Promise<LockHold>;
  giveUp(): void;
}

/** One who wants locks: a session on a connection, with short words for what cases do all the time. */
export class Contender {
  readonly locks: Locks;
  readonly session: Session;
  readonly #over: AbortSignal;

  constructor(locks: Locks, session: Session, over: AbortSignal) {
    this.locks = locks;
    this.session = session;
    this.#over = over;
  }

  /** Asks once. */
  async ask(name: string, wish: LockWish = {}): Promise<AcquireResult> {
    return await this.#acquire(name, { signal: AbortSignal.abort(), ...wish });
  }

  /** Takes what must be free. */
  async take(name: string, wish: LockWish = {}): Promise<LockHold> {
    return held(await this.ask(name, wish), name);
  }

  /** Asks for what must not be free. */
  async isRefused(
    name: string,
    why: "held" | "delayed" | "retired",
    promise: string,
    wish: LockWish = {},
  ): Promise<void> {
    const result = await this.ask(name, wish);
    equal(result.ok ? "granted" : result.why, why, promise);
  }

  wait(name: string, wish: LockWish = {}): Waiting {
    const patience = new AbortController();
    const answer = begun(this.#acquire(name, { signal: AbortSignal.any([patience.signal, this.#over]), ...wish }));
    const hold = begun(answer.then((result) => held(result, name)));
    return { answer, hold, giveUp: () => patience.abort() };
  }

  /** Waits, and is known to be in line when this resolves. */
  async waitInLine(name: string, wish: LockWish = {}): Promise<Waiting> {
    const before = (await this.locks.read(name))?.waiting;
    const waiting = this.wait(name, wish);
    const inLine = this.seesUntil(name, (report) => before === undefined || (report?.waiting ?? Infinity) > before);
    // One that is answered without having been seen in line was not in time, and the case says so.
    await Promise.race([inLine, waiting.answer]);
    // Where nobody can tell who waits, the call has at least been made.
    if (before === undefined) await this.locks.read(name);
    return waiting;
  }

  /** Lets go of what it must still hold. */
  async release(hold: LockHold, retireMs?: number): Promise<void> {
    const released = await this.locks.release({ hold, ...(retireMs === undefined ? {} : { retireMs }) });
    equal(released, true, `Releasing a hold on ${hold.name}`);
  }

  async renew(): Promise<Instant | undefined> {
    return await this.locks.renewSession(this.session);
  }

  /** Gives signs of life in time, until the case is over. */
  keepAlive(): void {
    const live = async (): Promise<void> => {
      while (!this.#over.aborted) {
        await this.renew();
        await pause(systemClock, this.session.leaseMs / RENEWALS);
      }
    };
    live().catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.locks.closeSession(this.session);
  }

  /** Watches the lock until it stands as wanted. */
  async seesUntil(
    name: string,
    isWanted: (report: LockReport | undefined) => boolean,
  ): Promise<LockReport | undefined> {
    const seen = new AbortController();
    let found: LockReport | undefined;
    const changed = (report: LockReport | undefined): void => {
      if (seen.signal.aborted || !isWanted(report)) return;
      found = report;
      seen.abort();
    };
    await this.locks.watch({ name, changed, signal: AbortSignal.any([seen.signal, this.#over]) });
    return found;
  }

  async #acquire(name: string, wish: LockWish & { readonly signal: AbortSignal }): Promise<AcquireResult> {
    return await this.locks.acquire({ session: this.session, name, slots: 1, delayAfterLossMs: 0, ...wish });
  }
}

export function held(result: AcquireResult, name: string): LockHold {
  if (result.ok) return result.hold;
  throw new NotConforming(`Lock ${name} was refused as ${result.why}, though it was to be had.`);
}

/** A call that a case may leave behind when it fails: what becomes of it then is nobody's concern. */
export function begun<T>(call: Promise<T>): Promise<T> {
  call.catch(() => undefined);
  return call;
}
