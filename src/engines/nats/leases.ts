/** The leases that this process holds: how they begin, are kept, and end. */
import { type Clock, elapsedMs, type Instant, instant, pause } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import { PassingSet } from "../../domain/passing.ts";
import type { Ending, Grant, HoldRequest, Lease, Renewal, RenewResult, SettleResult } from "../../engine/port.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { asError } from "./as-error.ts";
import { type Held, OwnLeases } from "./own-leases.ts";
import { textOf, tokenOf } from "./key-token.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import { LateWrites } from "./late-writes.ts";
import { itemId } from "./receipts.ts";
import { end, expire, free, hold, NO_HEADS, start, want, wantNoMore } from "./rules.ts";
import { type Session, type Sessions, slackOf } from "./sessions.ts";
import type { KeyState, Seen, StateLease } from "./state.ts";
import { Streak } from "./streak.ts";

/** Between two tries to free a key while the server is away. */
const PUT_BACK_MS = 1_000;
/** Items keep coming to a key that is about to start; then it is somebody's next try. */
const MOST_STARTS = 8;
/** Items that were taken out of a line and are still in the stream, before they are removed together. */
const MOST_TAKEN_LEFT = 16;

/** A ready key, and how it came here. */
export interface Token {
  readonly key: string;
  readonly seen: Seen;
  /** Undefined: it was freed by this process, and nobody has delivered it. */
  readonly delivery: Delivered | undefined;
}

export interface Delivered {
  readonly consumer: string;
  /** Where to acknowledge it. */
  readonly reply: string;
}

/** A key that is about to be this process's. */
interface Starting {
  readonly token: Token;
  readonly lease: StateLease;
  readonly session: Session;
  readonly since: Instant;
  /** By the monotonic clock. */
  readonly begun: number;
}

/** A hold that somebody waits for, or tries to have. */
export interface Wish {
  readonly session: Session;
  readonly lease: StateLease;
}

export interface LeaseHooks {
  readonly queue: string;
  readonly levelName: (level: number) => string;
  /** Whether this process would go on with a key that it settles. */
  readonly goesOn: (level: number) => boolean;
  /** Whether a key's next item may begin before that is written. */
  readonly mayRunAhead: () => boolean;
  /** A grant that nobody asked for yet. */
  readonly reserve: (held: Held) => void;
  /** A settlement that might have brought a grant is over. */
  readonly stir: () => void;
  /** A lease was over, and this write has freed its key. */
  readonly lost: (key: string, written: Seen) => void;
  /** After such a write the key is ready. */
  readonly freed: (token: Token) => void;
}

export class Leases {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #hooks: LeaseHooks;
  readonly #acknowledgements: Acknowledgements;
  readonly #held: OwnLeases;
  readonly #lateWrites: LateWrites;
  readonly #goingOn = new PassingSet<Held>();
  #closed = false;

  constructor(store: KeyStore, sessions: Sessions, acknowledgements: Acknowledgements, hooks: LeaseHooks) {
    this.#acknowledgements = acknowledgements;
    this.#store = store;
    this.#sessions = sessions;
    this.#clock = store.clock;
    this.#lateWrites = new LateWrites(store.clock);
    this.#held = new OwnLeases(sessions, store.clock, (held) => store.background(this.#putBackSurely(held)));
    this.#hooks = hooks;
  }

  get count(): number {
    return this.#held.count;
  }

  /** Settlements on their way that will bring their keys' next items, and the most urgent level among them. */
  get goingOn(): { readonly count: number; readonly level: number } {
    let level = this.#store.levels;
    for (const { streak } of this.#goingOn) {
      const { items } = streak.seen.state;
      level = Math.min(level, (items[1] ?? items[0])?.level ?? level);
    }
    return { count: this.#goingOn.size, level };
  }

  /** What was settled is written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#held.close();
    const streaks = new Set(this.#held.all().map(({ streak }) => streak));
    this.#lateWrites.close();
    await Promise.allSettled(Array.from(streaks, (streak) => streak.written()));
  }

  /** Undefined: the key does not stand as it was delivered any more. */
  start(token: Token, worker: string, leaseMs: number): Promise<Held | undefined> {
    const begun = this.#clock.monotonic();
    const session = this.#sessions.current(leaseMs);
    if (session !== undefined) return this.#startUnder(session, token, worker, begun);
    return this.#sessions.get(leaseMs).then((fresh) => this.#startUnder(fresh, token, worker, begun));
  }

  #startUnder(session: Session, token: Token, worker: string, begun: number): Promise<Held | undefined> {
    const { key, seen } = token;
    const since = this.#sinceOf(session);
    const lease = this.#newLease(session, worker, since);
    const starting: Starting = { token, lease, session, since, begun };
    // What was to be done may have been done since the key was announced.
    if (seen.state.todo.length > 0 || announcedBy(seen) !== seen.sequence) return this.#startAgain(starting);
    const began = (written: Seen | undefined): Held | Promise<Held | undefined> =>
      written === undefined ? this.#startAgain(starting) : this.#started(starting, seen, written);
    return this.#store
      .write(key, seen, start(seen.state, lease))
      .then(began, (error: unknown) => this.#mine(key, lease, error).then(began));
  }

  /** More may have come to the key since it was announced. */
  async #startAgain(starting: Starting): Promise<Held | undefined> {
    const { key, seen } = starting.token;
    for (let tries = MOST_STARTS; tries > 0; tries -= 1) {
      const found = await this.#store.read(key);
      if (announcedBy(found) !== seen.sequence) return undefined;
      const written = await this.#startFrom(key, found, starting.lease);
      if (written !== undefined) return this.#started(starting, found, written);
    }
    return undefined;
  }

  #started({ token, session, lease, since, begun }: Starting, { state }: Seen, written: Seen): Held {
    const held = this.#takeFirst(token.key, written, session, lease.worker, since, begun);
    this.#prepare(held, () => this.#settleIn(held, state.below, token));
    return held;
  }

  async #startFrom(key: string, seen: Seen, lease: StateLease): Promise<Seen | undefined> {
    // Whoever made the key ready may have died before this was done; a record that does not list it must not come first.
    if (seen.state.todo.length > 0) await this.#store.perform(key, seen.state);
    return await this.#begin(key, seen, start({ ...seen.state, todo: [] }, lease), lease);
  }

  /** Says under which session, and as what, a hold is to be had. The same as before, while its session lives. */
  async wish({ worker, leaseMs }: HoldRequest, before?: Wish): Promise<Wish> {
    this.#store.background(this.#sessions.watch());
    const session = await this.#sessions.get(leaseMs);
    if (before?.session === session) return before;
    return { session, lease: this.#newLease(session, worker, this.#sinceOf(session)) };
  }

  /** Its session gives signs of life while somebody waits for what is wished. */
  keepAlive({ session }: Wish): { stop(): void } {
    this.#sessions.begin(session);
    return { stop: () => this.#sessions.end(session) };
  }

  /**
   * One look at the key: has it if it was handed over, or takes it if nobody has it. If somebody has, whoever waits says that it is
   * wanted. Whoever leaves takes it only if it was handed over, and otherwise nothing is left of the wish.
   */
  async hold(key: string, { session, lease }: Wish, purpose: "try" | "wait" | "leave"): Promise<Lease | undefined> {
    if (purpose !== "leave") await this.#freeOfDead(key);
    const since = this.#sinceOf(session);
    let written: Seen | undefined;
    try {
      written = await this.#store.change(key, ({ state }) => {
        // Written once more: so it is known to be still so, and what its giver left to do is done.
        if (state.lease?.nonce === lease.nonce) return { ...state };
        if (purpose === "leave") return wantNoMore(state, lease);
        if (state.lease === undefined) return hold(state, lease);
        return purpose === "wait" ? want(state, lease) : undefined;
      });
    } catch (error) {
      written = await this.#mine(key, lease, error);
      // It may still be known.
      if (written === undefined && purpose === "leave") throw error;
    }
    if (written?.state.lease?.nonce !== lease.nonce) return undefined;
    return this.lease(this.#takeFirst(key, written, session, lease.worker, since));
  }

  /**
   * Where nobody claims, nobody may have noticed that a holder is gone. And a key may have been handed to somebody who died while
   * waiting for it, and whose session was removed before.
   */
  async #freeOfDead(key: string): Promise<void> {
    const { lease } = (await this.#store.read(key)).state;
    if (lease === undefined || (await this.#sessions.isAlive(lease.session))) return;
    await this.putBack(key, ({ session }) => session === lease.session);
  }

  lease(held: Held, key: string = textOf(held.key)): Lease {
    return { queue: this.#hooks.queue, key, fence: held.fence, since: held.since, handle: held };
  }

  grant(held: Held): Grant {
    const { item } = held;
    if (item === undefined) throw new Error("A lease of work has no item.");
    const key = textOf(held.key);
    return {
      lease: this.lease(held, key),
      item: {
        id: itemId(item, held.key),
        queue: this.#hooks.queue,
        key,
        level: this.#hooks.levelName(item.level),
        // What the handler does with its bytes is its own affair.
        payload: {
          type: item.payload.type,
          body: typeof item.payload.body === "string" ? item.payload.body : item.payload.body.slice(),
        },
        headers: item.headers,
        submittedAt: item.submittedAt,
        attempt: item.attempts,
      },
    };
  }

  settle(lease: Lease, ending: Ending): Promise<SettleResult> {
    return this.#settle(lease, ending, true);
  }

  /** @param mayWait whether it may be waited once until what is done before it is written */
  async #settle(lease: Lease, ending: Ending, mayWait: boolean): Promise<SettleResult> {
    const before = this.#held.own(lease.handle);
    if (before?.hasGoneOn === true) return await before.streak.again(before.item?.unique ?? "");
    const held = this.#held.find(lease) ?? (await this.#adopt(lease));
    if (held === undefined) return "lost";
    if (held.silent) {
      await this.drop(held);
      return "lost";
    }
    const ahead = this.#runAhead(held, ending);
    if (ahead !== undefined) return await ahead;
    const mayGoOn =
      this.#mayGoOn(held, ending) && (held.streak.seen.state.items.length > 1 || held.streak.seen.state.more !== false);
    if (mayWait && mayGoOn && held.streak.isAhead) return await this.#settleBehind(held, lease, ending);
    this.#held.lose(held);
    if (mayGoOn) this.#goingOn.add(held);
    try {
      return await this.#end(held, ending);
    } catch (error) {
      // Nothing is certain: the lease is this process's until it runs out, and may be settled again.
      this.#held.keep(held);
      throw error;
    } finally {
      if (this.#goingOn.delete(held)) this.#hooks.stir();
    }
  }

  /** The streak is as far ahead of what is written as it may be: once that is written, its next item may start as before. */
  async #settleBehind(held: Held, lease: Lease, ending: Ending): Promise<SettleResult> {
    this.#goingOn.add(held);
    try {
      await held.streak.written();
      // If it does not go on after all, its slot is for others.
      if (this.#goingOn.delete(held)) this.#hooks.stir();
      return await this.#settle(lease, ending, false);
    } finally {
      if (this.#goingOn.delete(held)) this.#hooks.stir();
    }
  }

  /** The key's next item starts now. Undefined: it has to wait until this one's end is written. */
  #runAhead(held: Held, ending: Ending): Promise<SettleResult> | undefined {
    const { streak, item, session, worker } = held;
    if (ending.type !== "done" || item === undefined || !this.#mayGoOn(held, ending)) return undefined;
    if (!this.#hooks.mayRunAhead()) return undefined;
    const next = streak.next(item, held.fence, this.#clock.wall());
    if (next === undefined) return undefined;
    const since = this.#sinceOf(session);
    const lease = { ...this.#newLease(session, worker, since), fence: next.fence };
    this.#held.lose(held);
    held.hasGoneOn = true;
    const follower = this.#held.take(streak, next.item, next.fence, session, worker, since);
    const settled = streak.advance(item.unique, held.fence, {
      item: next.item,
      lease,
      isGood: () => this.#held.isGood(follower),
      takeAway: () => {
        follower.silent = true;
      },
    });
    this.#hooks.reserve(follower);
    return settled;
  }

  /** Gives back a grant that nobody took. */
  async release(held: Held): Promise<void> {
    if (held.over) return;
    this.#held.lose(held);
    await this.#orKeep(held, this.#end(held, { type: "release" }, false));
  }

  /** Ends a lease whose item is not to be run, and says nothing about it. */
  async drop(held: Held): Promise<void> {
    this.#held.lose(held);
    await this.#orKeep(held, this.#end(held, { type: "done" }, false, true));
  }

  async renew({ lease, leaseMs, progress }: Renewal): Promise<RenewResult> {
    const held = this.#held.find(lease) ?? (await this.#adopt(lease));
    if (held === undefined) return { ok: false };
    const session = leaseMs === held.session.leaseMs ? held.session : await this.#sessions.get(leaseMs);
    const alive = await Promise.all([this.#sessions.beat(held.session), this.#sessions.beat(session)]);
    const seen = await this.#store.read(held.key);
    if (alive.includes(false) || !held.streak.isMine(seen.state.lease, held.fence)) {
      this.#held.lose(held);
      return { ok: false };
    }
    if (seen.sequence > held.streak.seen.sequence) await this.#changed(held, seen);
    if (progress !== undefined || session !== held.session) {
      if (!(await this.#note(held, session, leaseMs, progress))) return { ok: false };
    }
    // Meanwhile its old deadline may have passed, and the key be on its way to somebody else.
    if (held.over) return { ok: false };
    this.#held.renew(held, session.since, leaseMs);
    const { lease: written } = held.streak.seen.state;
    const cancelRequested = written?.fence === held.fence && written.cancelRequested;
    return { ok: true, since: held.since, cancelRequested };
  }

  /** Writes into the record what a renewal changed beside the deadline. */
  async #note(held: Held, session: Session, leaseMs: number, progress: number | undefined): Promise<boolean> {
    await held.streak.written();
    for (;;) {
      const { lease } = held.streak.seen.state;
      if (held.over || lease?.fence !== held.fence) return false;
      const noted = { ...lease, session: session.id, leaseMs, ...(progress === undefined ? {} : { progress }) };
      const written = await this.#write(held, { ...held.streak.seen.state, lease: noted });
      if (written === undefined) {
        if (await this.#again(held)) continue;
        this.#held.lose(held);
        return false;
      }
      held.streak.seen = written;
      if (session !== held.session) {
        this.#sessions.begin(session);
        this.#sessions.end(held.session);
        held.session = session;
      }
      return true;
    }
  }

  /** The lease ends; the key goes on as it must. */
  async #end(held: Held, ending: Ending, goOn = true, silent = false): Promise<SettleResult> {
    const store = this.#store;
    const { key } = held;
    const isGood = (): boolean => this.#held.isGood(held);
    if (!held.streak.isReady) await held.streak.ready.catch(() => held.streak.prepare());
    if (held.streak.isAhead) await held.streak.written();
    for (;;) {
      if (!isGood()) {
        this.#held.expire(held);
        return "lost";
      }
      const { state } = held.streak.seen;
      const now = this.#clock.wall();
      const { items, todo: said } = end(state, ending, now);
      const heads = state.more === false ? NO_HEADS : await store.heads(key, state, items);
      const todo = silent ? [] : said;
      const bare: KeyState = { ...state, todo: [] };
      let next = free(bare, items, heads, store.levels, now);
      if (next.kind === "idle" && state.more === true) {
        // Somebody may have joined since the look: say first that nobody may join in silence, then look again.
        if (!(await this.#rewrite(held, { ...state, todo: [], more: "closing" }))) return "lost";
        continue;
      }
      const session = held.session;
      const goesOn =
        goOn && next.kind === "ready" && this.#mayGoOn(held, ending) && !(await store.isVoid(next.items[0]));
      const since = this.#sinceOf(session);
      if (goesOn && next.takenLeft > state.takenLeft) next = await store.refill(key, next);
      // Only what a written state has taken may be removed: the write that is about to take more may be refused.
      if (state.takenLeft > (goesOn ? MOST_TAKEN_LEFT : 0)) {
        await store.purgeTaken(key, state.taken);
        next = { ...next, takenLeft: next.takenLeft - state.takenLeft };
      }
      if (goesOn) next = start(next, this.#newLease(session, held.worker, since));
      if (next.kind === "idle") next = { ...next, taken: [] };
      const sentAt = this.#clock.monotonic();
      const written = await this.#write(held, { ...next, todo: [...next.todo, ...todo] }, isGood);
      if (written === undefined) {
        if (!(await this.#again(held))) return "lost";
        continue;
      }
      let current = written;
      if (written.state.kind !== "idle") {
        await store.perform(key, written.state);
        current = await store.sayDone(key, written);
      }
      if (written.state.kind === "held") store.background(this.#freeOfDead(key));
      if (goesOn) this.#goOn(held, current, since, sentAt);
      else if (written.state.takenLeft > 0) store.background(store.purgeTaken(key, written.state.taken));
      return "settled";
    }
  }

  /** A write of the one who has the key. */
  #write(held: Held, next: KeyState, isGood?: () => boolean): Promise<Seen | undefined> {
    return this.#store
      .write(held.key, held.streak.seen, next, isGood)
      .catch((error: unknown) => this.#perhapsWritten(held, next, error));
  }

  async #perhapsWritten(held: Held, next: KeyState, error: unknown): Promise<Seen | undefined> {
    if (!(error instanceof OutcomeUnknown)) throw asError(error);
    const now = await this.#store.read(held.key);
    if (now.state.lease?.fence === held.fence) return undefined;
    // Somebody else's item came on top of it; the lease is this very one.
    if (next.lease !== undefined && now.state.lease?.nonce === next.lease.nonce) {
      await this.#store.perform(held.key, now.state);
      return { sequence: now.sequence, state: { ...now.state, todo: [] } };
    }
    throw error;
  }

  async #rewrite(held: Held, next: KeyState): Promise<boolean> {
    const written = await this.#write(held, next);
    if (written === undefined) return await this.#again(held);
    held.streak.seen = written;
    return true;
  }

  /** Somebody else changed the record. True: it is still this lease's. */
  async #again(held: Held): Promise<boolean> {
    const seen = await this.#store.read(held.key);
    if (!held.streak.isMine(seen.state.lease, held.fence)) return false;
    await this.#changed(held, seen);
    return true;
  }

  async #changed(held: Held, seen: Seen): Promise<void> {
    // Whoever wrote this may have died before it was done.
    await this.#store.perform(held.key, seen.state);
    // What lay below is gone already, or will be asked for again.
    held.streak.seen = { sequence: seen.sequence, state: { ...seen.state, below: [], todo: [] } };
  }

  #mayGoOn(held: Held, { type }: Ending): boolean {
    return (
      !this.#closed &&
      // One that is tried again, or given back, goes behind the keys that are ready.
      type !== "retry" &&
      type !== "release" &&
      this.#hooks.goesOn(held.item?.level ?? 0) &&
      held.streak.lasts(this.#clock.monotonic()) &&
      !held.session.dead
    );
  }

  #goOn(before: Held, written: Seen, since: Instant, sentAt: number): void {
    before.streak.goOn(written, sentAt);
    this.#hooks.reserve(this.#takeWritten(before.streak, before.session, before.worker, since));
  }

  #prepare({ streak }: Held, prepare: () => Promise<void>): void {
    streak.prepare = prepare;
    streak.isReady = false;
    streak.ready = prepare();
    streak.ready.then(
      () => {
        streak.isReady = true;
      },
      // Whoever settles hears of it, and tries again.
      () => undefined,
    );
  }

  /** After a lease has begun: what lay below it is removed. */
  async #settleIn(held: Held, below: readonly number[], { delivery, seen }: Token): Promise<void> {
    const { js, subjects } = this.#store;
    const acknowledged =
      delivery === undefined
        ? js.remove(subjects.stream, seen.sequence)
        : this.#acknowledgements.add(delivery.consumer, delivery.reply, seen.sequence);
    if (below.length > 0) await Promise.all(below.map((sequence) => js.remove(subjects.stream, sequence)));
    await acknowledged;
    // All below is gone now; nothing has to be said about it any more.
    held.streak.seen = { ...held.streak.seen, state: { ...held.streak.seen.state, below: [] } };
  }

  async #begin(key: string, seen: Seen, next: KeyState, lease: StateLease): Promise<Seen | undefined> {
    try {
      return await this.#store.write(key, seen, next);
    } catch (error) {
      return await this.#mine(key, lease, error);
    }
  }

  /** The reply was lost: the record itself tells whose the key is. */
  async #mine(key: string, lease: StateLease, error: unknown): Promise<Seen | undefined> {
    if (!(error instanceof OutcomeUnknown)) throw asError(error);
    const now = await this.#store.read(key);
    return now.state.lease?.nonce === lease.nonce ? now : undefined;
  }

  /** Watchers count from a session's last sign of life, and allow a lease to be a little younger than that; not more. */
  #sinceOf({ since, leaseMs }: Session): Instant {
    return elapsedMs(this.#clock, since) <= slackOf(leaseMs) ? instant(this.#clock) : since;
  }

  #newLease(session: Session, worker: string, since: Instant): StateLease {
    return {
      fence: 0,
      session: session.id,
      worker,
      since: since.wall,
      leaseMs: session.leaseMs,
      nonce: this.#store.nonce(),
      progress: undefined,
      cancelRequested: false,
    };
  }

  /** The first lease of a streak: a key that was just written as this process's. */
  #takeFirst(
    key: string,
    seen: Seen,
    session: Session,
    worker: string,
    since: Instant,
    begun = Number.NEGATIVE_INFINITY,
  ): Held {
    const streak = new Streak(this.#store, key, seen, begun, this.#lateWrites);
    return this.#takeWritten(streak, session, worker, since);
  }

  #takeWritten(streak: Streak, session: Session, worker: string, since: Instant): Held {
    const { kind, items, lease } = streak.seen.state;
    const item = kind === "running" ? items[0] : undefined;
    return this.#held.take(streak, item, lease?.fence ?? 0, session, worker, since);
  }

  /** A lease that another handle took, and that is settled or renewed through this one. */
  async #adopt(lease: Lease): Promise<Held | undefined> {
    const { handle } = lease;
    if (this.#held.own(handle) !== undefined) return undefined;
    const key = tokenOf(lease.key);
    const isIt = ({ fence, leaseMs }: StateLease): boolean =>
      fence === lease.fence && elapsedMs(this.#clock, lease.since) < leaseMs;
    const found = await this.#store.read(key);
    if (found.state.lease === undefined || !isIt(found.state.lease)) return undefined;
    if (!(await this.#sessions.isAlive(found.state.lease.session))) return undefined;
    const session = await this.#sessions.get(found.state.lease.leaseMs);
    const written = await this.#store.change(key, ({ state }) =>
      state.lease === undefined || !isIt(state.lease)
        ? undefined
        : { ...state, lease: { ...state.lease, session: session.id } },
    );
    if (written === undefined) return undefined;
    const held = this.#takeFirst(
      key,
      { ...written, state: { ...written.state, below: [], todo: [] } },
      session,
      written.state.lease?.worker ?? "",
      lease.since,
    );
    return held;
  }

  /** When it fails, the lease is still here, and runs out. */
  async #orKeep(held: Held, ending: Promise<SettleResult>): Promise<void> {
    try {
      await ending;
    } catch (error) {
      this.#held.keep(held);
      throw error;
    }
  }

  /** This process's session lives on: nobody else would free the key. */
  async #putBackSurely(held: Held): Promise<void> {
    while (!this.#closed) {
      try {
        await this.putBack(
          held.key,
          (lease) => held.streak.isMine(lease, held.fence) && lease.session === held.session.id,
        );
        return;
      } catch {
        await pause(this.#clock, PUT_BACK_MS);
      }
    }
  }

  /** Frees a key whose lease is over, if it still has the lease that is meant. */
  async putBack(key: string, isMeant: (lease: StateLease) => boolean): Promise<void> {
    const written = await this.#store.letGo(key, ({ state }, now) => {
      if (state.lease === undefined || !isMeant(state.lease)) return undefined;
      const { items, todo } = expire(state, now);
      return { ...state, items, lease: undefined, todo: [...state.todo, ...todo] };
    });
    if (written !== undefined) this.#hooks.lost(key, written);
    if (written?.state.kind === "ready") this.#hooks.freed({ key, seen: written, delivery: undefined });
    if (written?.state.kind === "held") await this.#freeOfDead(key);
  }

  /** All that was begun in the background is done. */
  async quiet(): Promise<void> {
    await Promise.allSettled(Array.from(this.#held.all(), ({ streak }) => streak.ready));
  }
}
