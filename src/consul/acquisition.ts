/**
 * One call of `acquire`:
 *
 *   look ──a slot for me──▶ take ──done──▶ holding
 *    │                       └──somebody was faster, or Consul delays the slot──▶ look
 *    ├──none, and the signal has fired──▶ refused
 *    └──none──▶ in line ──something changed──▶ look
 *                  └──session over──▶ out of the line, and an error
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SessionLost } from "../domain/errors.ts";
import type { AcquireRequest, AcquireResult } from "../locks/port.ts";
import type { ConsulApi } from "./api.ts";
import type { Changes } from "./changes.ts";
import type { HoldWatch } from "./hold-watch.ts";
import { Unanswered } from "./http.ts";
import type { LockReader } from "./lock-reader.ts";
import { type LockState, slotKey, waiterKey } from "./lock-keys.ts";
import { isOutage, type Outside, Patience } from "./patience.ts";
import { type Contender, decide, type Decision } from "./rules.ts";
import type { OwnSession, Sessions, Trace } from "./sessions.ts";

/**
 * Consul refuses a delayed slot without saying for how long. Who saw the loss knows when it ends; who came later asks a few
 * times, at intervals that are a part of the delay.
 */
const ASKS_PER_DELAY = 8;
const SHORTEST_ASK_MS = 250;
const LONGEST_WAY_MS = 256;

export interface AcquisitionParts extends Outside {
  readonly api: ConsulApi;
  readonly reader: LockReader;
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly holds: HoldWatch;
  /** Fires when the connection closes. */
  readonly closing: AbortSignal;
}

/** The handle behind the port's `LockHold`. */
export class OwnHold {
  readonly nonce: string;
  readonly slots: number;
  readonly trace: Trace;

  constructor(nonce: string, slots: number, trace: Trace) {
    this.nonce = nonce;
    this.slots = slots;
    this.trace = trace;
  }
}

export class Acquisition {
  readonly #parts: AcquisitionParts;
  readonly #request: AcquireRequest;
  readonly #session: OwnSession;
  readonly #nonce: string;
  readonly #lock: string;
  readonly #trace: Trace;
  readonly #patience: Patience;
  /** Slots that Consul delays, with the time at which it is asked again. */
  readonly #notBefore = new Map<number, number>();
  #isInLine = false;
  /** The lock was read after the signal had fired, so that what it says to one who gives up is true. */
  #isLastLook = false;
  #beaten = 0;

  constructor(parts: AcquisitionParts, request: AcquireRequest, session: OwnSession, nonce: string) {
    this.#parts = parts;
    this.#request = request;
    this.#session = session;
    this.#nonce = nonce;
    this.#lock = parts.reader.lockOf(request.name);
    this.#trace = { lock: request.name, isUsed: true, doubtedAt: undefined };
    this.#patience = new Patience(parts, `the lock ${request.name}`);
  }

  async run(): Promise<AcquireResult> {
    const { traces } = this.#session;
    traces.set(this.#nonce, this.#trace);
    let isHeld = false;
    try {
      const result = await this.#acquire();
      isHeld = result.ok;
      return result;
    } finally {
      if (!isHeld && this.#isInLine) await this.#leaveLine();
      this.#trace.isUsed = isHeld;
      // A write whose reply was lost may still arrive: whoever renews the session looks after it.
      if (!isHeld && this.#trace.doubtedAt === undefined) traces.delete(this.#nonce);
    }
  }

  async #acquire(): Promise<AcquireResult> {
    const { slots, delayAfterLossMs: delayMs } = this.#request;
    let state: LockState | undefined;
    for (;;) {
      try {
        state ??= await this.#read();
        if (!this.#session.isAlive(this.#parts.clock)) throw this.#lost();
        const consulSession = await this.#parts.sessions.part(this.#session, delayMs);
        const contender = { nonce: this.#nonce, slots, delayMs, consulSession, record: this.#record() };
        const result = await this.#step(state, contender);
        if ("ok" in result) return result;
        state = result.state;
      } catch (error) {
        // Whoever has time waits until Consul is back, or the session is over.
        if (!isOutage(error) || this.#isGivenUp()) throw error;
        if (!this.#session.isAlive(this.#parts.clock)) throw this.#lost();
        this.#patience.reset();
        state = undefined;
      }
    }
  }

  async #read(): Promise<LockState> {
    this.#isLastLook = this.#isGivenUp();
    return await this.#parts.reader.read(this.#request.name);
  }

  async #step(state: LockState, contender: Contender): Promise<AcquireResult | { state: LockState | undefined }> {
    const { changes, clock } = this.#parts;
    const decision = decide(this.#lock, state, contender, this.#notBefore, clock.wall());
    if (decision.kind === "held") return this.#held(decision, contender, state);
    if (decision.kind === "take") return (await this.#take(state, decision, contender)) ?? { state: undefined };
    if (this.#isGivenUp()) return this.#isLastLook ? { ok: false, why: decision.why } : { state: undefined };
    if (!this.#isInLine || !this.#hasPlace(state)) {
      await this.#joinLine();
      return { state: undefined };
    }
    const withinMs = decision.until === undefined ? Infinity : decision.until - clock.wall();
    const signals = [this.#request.signal, this.#session.over.signal, this.#parts.closing];
    const sessionMs = this.#session.since.monotonic + this.#session.leaseMs - clock.monotonic();
    return { state: await changes.next(state, Math.min(withinMs, sessionMs), AbortSignal.any(signals)) };
  }

  /** Undefined: look again. */
  async #take(
    state: LockState,
    { steps, lockStep, slot }: Extract<Decision, { kind: "take" }>,
    contender: Contender,
  ): Promise<AcquireResult | undefined> {
    const { api, sessions, reader } = this.#parts;
    try {
      const committed = await api.commit(steps);
      this.#patience.reset();
      if (committed.ok) return this.#held({ slot, fence: committed.index }, contender, state);
      if (committed.refused.length > 1 || committed.refused[0] !== lockStep) {
        await this.#giveWay();
        return undefined;
      }
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      await this.#unanswered(error);
      return undefined;
    }
    // That step fails alone when the slot is delayed, and when the session is over.
    if (!(await sessions.exists(this.#session))) {
      this.#session.end(`Consul does not know it any more (${contender.consulSession})`);
      throw this.#lost();
    }
    this.#askLater(state, slot);
    await reader.noteLosses(state);
    return undefined;
  }

  /** Somebody was faster. Those who were slower several times in a row spread out. */
  async #giveWay(): Promise<void> {
    this.#beaten += 1;
    const mostMs = Math.min(2 ** this.#beaten, LONGEST_WAY_MS);
    if (this.#beaten > 2) await sleep(mostMs * this.#parts.random());
  }

  #askLater(state: LockState, slot: number): void {
    const now = this.#parts.clock.wall();
    const taken = state.coordination?.taken.find((one) => one.slot === slot);
    const next = now + Math.max((taken?.delayMs ?? 0) / ASKS_PER_DELAY, SHORTEST_ASK_MS);
    const end = taken?.lostUntil ?? (taken === undefined ? Infinity : now + taken.delayMs);
    this.#notBefore.set(slot, end > now ? Math.min(next, end) : next);
  }

  async #joinLine(): Promise<void> {
    const { api, sessions } = this.#parts;
    const { owner, id } = this.#session;
    const value = JSON.stringify({ owner, slots: this.#request.slots });
    this.#isInLine = true;
    try {
      const key = waiterKey(this.#lock, this.#nonce);
      const committed = await api.commit([{ verb: "lock", key, session: id, value }]);
      this.#patience.reset();
      if (committed.ok) return;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      await this.#unanswered(error);
      return;
    }
    if (await sessions.exists(this.#session)) return;
    this.#session.end("Consul does not know it any more");
    throw this.#lost();
  }

  async #leaveLine(): Promise<void> {
    try {
      await this.#parts.api.commit([{ verb: "delete", key: waiterKey(this.#lock, this.#nonce) }]);
    } catch {
      this.#doubt();
    }
  }

  async #unanswered(error: Unanswered): Promise<void> {
    if (error.isDoubtful) this.#doubt();
    await this.#patience.pause(error, this.#session.over.signal);
  }

  #doubt(): void {
    this.#trace.doubtedAt = this.#parts.clock.monotonic();
  }

  #held(
    { slot, fence }: { readonly slot: number; readonly fence: number },
    { consulSession }: Contender,
    { foreign }: LockState,
  ): AcquireResult {
    const { name, session, slots, lost, foreign: foundLater } = this.#request;
    const { leaseMs } = session;
    this.#isInLine = false;
    if (!this.#session.isAlive(this.#parts.clock)) {
      // Whoever closes the session takes it away.
      this.#doubt();
      throw this.#lost();
    }
    this.#trace.stopWatching = this.#parts.holds.begin({
      key: slotKey(this.#lock, slot),
      fence,
      nonce: this.#nonce,
      consulSession,
      leaseMs,
      lost: () => {
        this.#trace.isUsed = false;
        if (this.#trace.doubtedAt === undefined) this.#session.traces.delete(this.#nonce);
        lost?.();
      },
      foreign: (found) => foundLater?.(found),
    });
    const handle = new OwnHold(this.#nonce, slots, this.#trace);
    return { ok: true, hold: { name, fence, session, handle, ...(foreign.length === 0 ? {} : { foreign }) } };
  }

  #record(): Contender["record"] {
    const { data } = this.#request;
    const { id, owner } = this.#session;
    const since = this.#parts.clock.wall();
    return { nonce: this.#nonce, session: id, owner, since, ...(data === undefined ? {} : { data }) };
  }

  #hasPlace({ waiters }: LockState): boolean {
    return waiters.some(({ nonce, session }) => nonce === this.#nonce && session !== undefined);
  }

  #isGivenUp(): boolean {
    return this.#request.signal.aborted || this.#parts.closing.aborted;
  }

  #lost(): SessionLost {
    return this.#session.lost ?? new SessionLost(this.#session.owner, "it is over");
  }
}
