/**
 * Plays a script on a real store, step by step, and compares each answer with the model's. A step whose calls or sessions are not there is
 * left out, so that a script can be shortened.
 */
import assert from "node:assert/strict";
import { type Clock, pause } from "../../../src/domain/clock.ts";
import { BatonError } from "../../../src/domain/errors.ts";
import type { AcquireResult, LockHold, Locks, LockReport, Session } from "../../../src/locks/port.ts";
import { LockModel, type ModelCall } from "./model.ts";
import { keptAlive, type OpenSession, Stalled } from "./kept-alive.ts";
import { Onlookers } from "./onlookers.ts";
import { Watched, within } from "./patiently.ts";
import { SLOTS, type Step } from "./script.ts";
import { expectedOf, type Seen, seen, untilSeen } from "./seen.ts";
import { SessionEnds } from "./session-ends.ts";
import { playStorm } from "./storm.ts";

export interface LockStore {
  readonly clock: Clock;
  /** Connections like those of several processes. */
  readonly handles: readonly Locks[];
  /** By means of the store. */
  readonly takeAway: (name: string) => Promise<void>;
  /** The ids of all sessions that are there. */
  readonly sessions: () => Promise<readonly string[]>;
  /** Of those who vanish. */
  readonly leaseMs: number;
  /** So long after its time at most a store says that somebody is gone. */
  readonly slackMs: number;
}

/** Far longer than a script, and than its shortening. */
const LONG_MS = 600_000;
const MOMENT_MS = 150;
/** A loaded machine is slow; what never comes is told after this. */
const PATIENCE_MS = 20_000;
/** Stores count whole milliseconds. */
const ROUNDING_MS = 2;
/** The session of those who vanish; no step names it. */
const MORTAL = -1;

interface OpenCall {
  readonly asked: Watched<AcquireResult>;
  readonly giveUp: AbortController;
  readonly lost: PromiseWithResolvers<void>;
  timesLost: number;
  hold: LockHold | undefined;
}

export class Player {
  readonly #store: LockStore;
  readonly #name: string;
  readonly #model = new LockModel();
  readonly #sessions = new Map<number, OpenSession>();
  readonly #calls = new Map<number, OpenCall>();
  readonly #fences: number[] = SLOTS.map(() => 0);
  readonly #ends: SessionEnds;
  #mortals = 0;

  /** @param name begins the names of its locks: no other script has it */
  constructor(store: LockStore, name: string) {
    this.#store = store;
    this.#name = name;
    this.#ends = new SessionEnds(store);
  }

  async play(script: readonly Step[]): Promise<void> {
    const onlookers = new Onlookers(
      this.#store.handles.at(-1) ?? raise("no handle"),
      SLOTS.map((_, lock) => this.#lockName(lock)),
    );
    try {
      await this.#playAll(script);
    } finally {
      await onlookers.stop();
    }
    onlookers.check();
  }

  async #playAll(script: readonly Step[]): Promise<void> {
    for (const [index, step] of script.entries()) {
      try {
        await this.#play(step);
        if (index % 8 === 7) await this.#compareList();
      } catch (error) {
        // Nothing can be said of what came then, nor of what follows.
        if (error instanceof Stalled) return;
        throw new Error(`step ${index + 1}, ${JSON.stringify(step)}: ${messageOf(error)}`, { cause: error });
      }
    }
    try {
      await this.#end();
    } catch (error) {
      throw new Error(`the end: ${messageOf(error)}`, { cause: error });
    }
  }

  async #play(step: Step): Promise<void> {
    switch (step.do) {
      case "open":
        if (!this.#sessions.has(step.session)) await this.#open(step.session, step.handle, LONG_MS, step.expiry);
        return;
      case "close":
        return await this.#close(step.session);
      case "ask and close":
        return await this.#askAndClose(step);
      case "renew":
        return await this.#renew(step.session);
      case "try":
      case "wait":
        if (!this.#sessions.has(step.session)) return;
        return await this.#ask(step, step.do, step.delayMs);
      case "give up":
        return await this.#giveUp(step.call);
      case "release":
        return await this.#release(step.call, step.retire);
      case "disagree":
        return await this.#disagree(step.session, step.lock);
      case "take away":
        return await this.#takeAway(step.lock);
      case "vanish":
        if (this.#sessions.has(step.session)) await this.#vanish(step);
        return;
      case "vanish unseen":
        return await this.#vanishUnseen(step);
      case "storm":
        return await this.#storm(step);
    }
  }

  async #open(number: number, handle: number, leaseMs: number, expiry: "release" | "delete"): Promise<OpenSession> {
    const locks = this.#store.handles[handle];
    if (locks === undefined) throw new Error(`There is no handle ${handle}.`);
    const session = await locks.openSession({ owner: `${this.#name}:${number}`, leaseMs, expiry });
    const open = { session, locks };
    this.#sessions.set(number, open);
    return open;
  }

  async #close(number: number): Promise<void> {
    const open = this.#sessions.get(number);
    if (open === undefined) return;
    this.#sessions.delete(number);
    const { held, waiting } = this.#model.of(number);
    await within(this.#store.clock, PATIENCE_MS, `the end of session ${number}`, open.locks.closeSession(open.session));
    this.#ends.closed(open.session.id);
    for (const one of held) this.#model.release(one, false);
    for (const one of waiting) {
      this.#model.giveUp(one);
      await assert.rejects(this.#answer(one.call), { code: "SESSION_LOST" });
    }
    await this.#serve();
    const [hold] = held.map(({ call }) => this.#call(call).hold);
    if (hold !== undefined) assert.equal(await open.locks.release({ hold }), false, "it went with its session");
    await assert.rejects(
      open.locks.acquire({ ...this.#request(open.session, 0), signal: AbortSignal.abort() }),
      { code: "SESSION_LOST" },
      "a session that was closed takes nothing",
    );
    assert.equal(await open.locks.renewSession(open.session), undefined, "a session that was closed is over");
  }

  async #askAndClose({ session, lock, how, delayMs }: Extract<Step, { readonly do: "ask and close" }>): Promise<void> {
    // Such a call may hold the lock for a moment, and then what a lost holder left is gone.
    const mayForget = this.#model.isFree(lock) && this.#model.lock(lock).lastData !== undefined;
    if (!this.#sessions.has(session) || mayForget) return;
    this.#mortals += 1;
    const asked = this.#begin({ call: -this.#mortals, session, lock, data: "too late" }, how, delayMs).asked.promise;
    const refused = asked.then((answer) => {
      if (how === "wait" || answer.ok) throw new Error("a call outlives its session");
    });
    const isOver = how === "try" ? refused.catch(assertSessionLost) : assert.rejects(refused, { code: "SESSION_LOST" });
    isOver.catch(() => undefined);
    await this.#close(session);
    // Nothing of it stays once the session is closed.
    await this.#compare(lock);
    await isOver;
  }

  async #renew(number: number): Promise<void> {
    const open = this.#sessions.get(number);
    if (open === undefined) return;
    const before = this.#store.clock.monotonic();
    const since = await open.locks.renewSession(open.session);
    assert.ok(since !== undefined && since.monotonic >= before, "the sign of life counts from when it was given");
  }

  async #ask(one: ModelCall, how: "try" | "wait", delayMs: number): Promise<void> {
    const isFree = this.#model.isFree(one.lock);
    const open = this.#begin(one, how, delayMs);
    if (how === "try") {
      const expected = this.#model.try(one);
      const answer = await this.#answer(one.call);
      assert.equal(answer.ok ? "granted" : answer.why, expected);
      if (answer.ok) this.#granted(one, answer.hold);
    } else {
      this.#model.wait(one);
      await this.#serve();
      if (!isFree) assert.ok(!open.asked.isSettled, `call ${one.call} waits`);
    }
    await this.#compare(one.lock);
  }

  #begin({ call, session, lock, data }: ModelCall, how: "try" | "wait", delayMs: number): OpenCall {
    const open = this.#sessions.get(session);
    if (open === undefined) throw new Error(`There is no session ${session}.`);
    const giveUp = new AbortController();
    if (how === "try") giveUp.abort();
    const { signal } = giveUp;
    const lost = Promise.withResolvers<void>();
    const request = { ...this.#request(open.session, lock), delayAfterLossMs: delayMs, signal };
    const asked = open.locks.acquire({
      ...request,
      ...(data === undefined ? {} : { data }),
      lost: () => {
        begun.timesLost += 1;
        lost.resolve();
      },
    });
    const begun: OpenCall = { asked: new Watched(asked), giveUp, lost, timesLost: 0, hold: undefined };
    this.#calls.set(call, begun);
    return begun;
  }

  async #giveUp(call: number): Promise<void> {
    const one = this.#model.waiting(call);
    if (one === undefined) return;
    this.#call(call).giveUp.abort();
    const answer = await this.#answer(call);
    assert.equal(answer.ok ? "granted" : answer.why, this.#model.refusal(one.lock));
    this.#model.giveUp(one);
    await this.#compare(one.lock);
  }

  async #release(call: number, retire: "no" | "none" | "moment" | "long"): Promise<void> {
    const one = this.#model.holding(call);
    if (one === undefined) return;
    const hold = this.#hold(call);
    const isSeen = this.#model.lock(one.lock).waiters.length > 0;
    const retireMs = { no: undefined, none: 0, moment: isSeen ? MOMENT_MS : 0, long: LONG_MS }[retire];
    const before = this.#store.clock.wall();
    const locks = this.#locksOf(one);
    assert.equal(await locks.release({ hold, ...(retireMs === undefined ? {} : { retireMs }) }), true);
    this.#model.release(one, retire === "long");
    assert.equal(await locks.release({ hold }), false, "what was released is not held");
    await this.#serve(retire === "moment" && isSeen ? before + MOMENT_MS : 0);
    await this.#compare(one.lock);
  }

  async #disagree(number: number, lock: number): Promise<void> {
    const open = this.#sessions.get(number);
    const { holders, waiters, slots } = this.#model.lock(lock);
    if (open === undefined || holders.length + waiters.length === 0) return;
    const request = { ...this.#request(open.session, lock), slots: slots + 1 };
    await assert.rejects(open.locks.acquire({ ...request, signal: AbortSignal.abort() }), { field: "slots" });
  }

  async #takeAway(lock: number): Promise<void> {
    const { holders, waiters } = this.#model.lock(lock);
    // Those who wait hear of it when they next look after those who hold, which is after a lease.
    if (holders.length === 0 || waiters.length > 0) return;
    await this.#store.takeAway(this.#lockName(lock));
    const lost = this.#model.takeAway(lock);
    for (const { call, session } of lost) {
      await this.#renew(session);
      await within(this.#store.clock, PATIENCE_MS, `call ${call} hearing of its loss`, this.#call(call).lost.promise);
      assert.equal(await this.#locksOf({ session }).release({ hold: this.#hold(call) }), false);
    }
    await this.#compare(lock);
  }

  /** Of a free lock all free slots go to one session, which is not renewed; of one that is held, a place in line. */
  async #vanish(step: Extract<Step, { readonly do: "vanish" }>): Promise<void> {
    const { lock, handle, expiry } = step;
    const { slots, holders, isRetired } = this.#model.lock(lock);
    if (isRetired) return;
    const { leaseMs, slackMs } = this.#store;
    const open = await this.#open(MORTAL, handle, leaseMs, expiry);
    const free = this.#model.isFree(lock) ? slots - holders.length : 0;
    // Delays that are not over at the same time cannot be told from slots that are held.
    const delayMs = free === 1 ? step.delayMs : 0;
    const mortals = Array.from({ length: Math.max(1, free) }, (): ModelCall => {
      this.#mortals += 1;
      return { call: -this.#mortals, session: MORTAL, lock, data: "vanished" };
    });
    const since = await keptAlive(this.#store.clock, open, async () => {
      for (const one of mortals) {
        this.#begin(one, "wait", delayMs);
        this.#model.wait(one);
        await this.#serve();
      }
      if (step.livesLeases > 0) await pause(this.#store.clock, step.livesLeases * leaseMs + delayMs);
    });
    this.#begin(step, "wait", 0);
    this.#model.wait(step);
    if (free === 0) {
      for (const { call } of mortals) await assert.rejects(this.#answer(call), { code: "SESSION_LOST" });
      for (const one of mortals) this.#model.giveUp(one);
    } else {
      for (const one of mortals) this.#model.release(one, false);
      await this.#serve(since.wall + leaseMs + delayMs);
      const tookMs = this.#store.clock.monotonic() - since.monotonic - leaseMs - delayMs;
      assert.ok(tookMs < slackMs, `it took ${Math.round(tookMs)} ms more than the lease and its delay`);
      for (const { call } of mortals) assert.equal(await open.locks.release({ hold: this.#hold(call) }), false);
    }
    assert.equal(await open.locks.renewSession(open.session), undefined, "what ran out is over");
    this.#sessions.delete(MORTAL);
    this.#ends.vanished(open.session.id, since);
    await this.#compare(lock);
  }

  async #vanishUnseen({ lock, handle, expiry }: Extract<Step, { readonly do: "vanish unseen" }>): Promise<void> {
    const model = this.#model.lock(lock);
    if (!this.#model.isFree(lock)) return;
    const open = await this.#open(MORTAL, handle, this.#store.leaseMs, expiry);
    this.#mortals += 1;
    const one: ModelCall = { call: -this.#mortals, session: MORTAL, lock, data: "left behind" };
    const since = await keptAlive(this.#store.clock, open, async () => {
      this.#begin(one, "wait", 0);
      this.#model.wait(one);
      await this.#serve();
    });
    const { id } = open.session;
    await this.#untilSeen(lock, (report) => report?.holders.every((holder) => holder.session !== id) ?? true);
    this.#sessions.delete(MORTAL);
    this.#ends.vanished(open.session.id, since);
    this.#model.release(one, false);
    model.lastData = expiry === "release" ? one.data : undefined;
    await this.#compare(lock);
  }

  async #storm({ lock, calls, tries }: Extract<Step, { readonly do: "storm" }>): Promise<void> {
    const model = this.#model.lock(lock);
    const all = [...this.#sessions.values()];
    if (!this.#model.isFree(lock) || model.holders.length > 0 || all.length === 0) return;
    const asks = Array.from({ length: calls + tries }, (_, index) => {
      const { locks, session } = all[index % all.length] ?? raise("no session");
      const signal = index < calls ? new AbortController().signal : AbortSignal.abort();
      return { locks, request: { ...this.#request(session, lock), signal } };
    });
    const fences = await within(this.#store.clock, PATIENCE_MS, "the end of a storm", playStorm(asks, model.slots));
    for (const fence of fences) {
      assert.ok(fence > (this.#fences[lock] ?? 0), `fence ${fence} is greater than every earlier one`);
    }
    this.#fences[lock] = Math.max(...fences, this.#fences[lock] ?? 0);
    if (fences.length > 0) model.lastData = undefined;
    await this.#compare(lock);
  }

  /** Those who are next hold now, in the order in which they came; the others have their places. */
  async #serve(notBefore = 0): Promise<void> {
    for (const one of this.#model.serve()) {
      const answer = await this.#answer(one.call);
      assert.ok(answer.ok, `call ${one.call} waits, and is not refused`);
      const early = notBefore - this.#store.clock.wall();
      assert.ok(early <= ROUNDING_MS, `call ${one.call} was granted ${early} ms too early`);
      this.#granted(one, answer.hold);
    }
    for (const [lock, { waiters }] of this.#model.locks.entries()) {
      if (waiters.length > 0) await this.#untilSeen(lock, (report) => report?.waiting === waiters.length);
      for (const { call } of waiters) assert.ok(!this.#call(call).asked.isSettled, `call ${call} waits`);
    }
  }

  #granted({ call, lock, session }: ModelCall, hold: LockHold): void {
    const { fence, name } = hold;
    assert.equal(name, this.#lockName(lock));
    assert.equal(hold.session.id, this.#sessions.get(session)?.session.id);
    assert.ok(fence > (this.#fences[lock] ?? 0), `fence ${fence} is greater than every earlier one`);
    this.#fences[lock] = fence;
    this.#call(call).hold = hold;
  }

  async #compare(lock: number): Promise<void> {
    const [locks] = this.#store.handles;
    const report = await locks?.read(this.#lockName(lock));
    assert.deepEqual(seen(report), this.#expected(lock));
  }

  async #compareList(): Promise<void> {
    for (const locks of this.#store.handles) {
      const reports = (await locks.list()).filter(({ name }) => name.startsWith(`${this.#name}-`));
      const expected = SLOTS.map((_, lock) => this.#expected(lock)).filter((one) => one !== undefined);
      assert.deepEqual(reports.map(seen), expected);
    }
  }

  #expected(lock: number): Seen | undefined {
    return expectedOf(this.#lockName(lock), this.#model.lock(lock), ({ call, session, data }) => {
      const { fence } = this.#hold(call);
      return { owner: `${this.#name}:${session}`, session: this.#sessions.get(session)?.session.id ?? "", fence, data };
    });
  }

  async #untilSeen(lock: number, isIt: (report: LockReport | undefined) => boolean): Promise<void> {
    const [locks = raise("no handle")] = this.#store.handles;
    const seeing = untilSeen(locks, this.#lockName(lock), isIt);
    await within(this.#store.clock, PATIENCE_MS, `news of lock ${lock}`, seeing);
  }

  async #end(): Promise<void> {
    await this.#compareList();
    for (const [call, { timesLost }] of this.#calls) assert.ok(timesLost <= 1, `call ${call} was lost once`);
    for (const lock of SLOTS.keys()) {
      const { holders, waiters } = this.#model.lock(lock);
      for (const { call } of waiters) await this.#giveUp(call);
      for (const { call } of holders) await this.#release(call, "no");
    }
    const open = [...this.#sessions.keys()];
    for (const number of open) await this.#close(number);
    await this.#compareList();
    await this.#ends.check();
  }

  #request(session: Session, lock: number): Omit<Parameters<Locks["acquire"]>[0], "signal"> {
    return { session, name: this.#lockName(lock), slots: this.#model.lock(lock).slots, delayAfterLossMs: 0 };
  }

  #answer(call: number): Promise<AcquireResult> {
    return within(this.#store.clock, PATIENCE_MS, `an answer to call ${call}`, this.#call(call).asked.promise);
  }

  #lockName(lock: number): string {
    return `${this.#name}-${lock}`;
  }

  #call(call: number): OpenCall {
    return this.#calls.get(call) ?? raise(`Call ${call} was not made.`);
  }

  #hold(call: number): LockHold {
    return this.#call(call).hold ?? raise(`Call ${call} holds nothing.`);
  }

  #locksOf({ session }: { readonly session: number }): Locks {
    return (this.#sessions.get(session) ?? raise(`There is no session ${session}.`)).locks;
  }
}

export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof BatonError ? `${error.code} ${error.message}` : error.message;
}

function assertSessionLost(error: unknown): void {
  assert.ok(error instanceof BatonError && error.code === "SESSION_LOST", messageOf(error));
}

function raise(what: string): never {
  throw new Error(what);
}
