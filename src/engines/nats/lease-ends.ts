/** How leases end: what the report says becomes of the items, and the key is free, or its worker's for a further run by the same write. */
import type { Clock, Instant } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import { MOST_TURN_MS, type NextRequest, type Settlement } from "../../engine/port.ts";
import { adopt } from "./adoption.ts";
import { end, type Report } from "./endings.ts";
import type { Freeing } from "./freeing.ts";
import { lookAgain, rewriteHeld, writeHeld } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import { lookAt } from "./look.ts";
import { newLease, sinceOf } from "./new-lease.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import { free, type Look, NO_LOOK, start, takeAlong } from "./rules.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { KeyItem, KeyState, Seen, StateLease } from "./state.ts";

/** Items that were taken out of a line and are still in the stream, before they are removed together. */
const MOST_TAKEN_LEFT = 16;
export interface Ended {
  readonly result: "settled" | "lost";
  /** The key's next run, if it was asked for. */
  readonly next?: Held;
}

export interface LeaseEndsParts {
  readonly store: KeyStore;
  readonly sessions: Sessions;
  readonly leases: OwnLeases;
  readonly freeing: Freeing;
}

/** A lease of the key's next run, as it is about to be written. */
interface Next {
  readonly lease: StateLease;
  /** The most items that it covers. */
  readonly most: number;
  readonly session: Session;
  readonly since: Instant;
}

const SETTLED: Ended = { result: "settled" };
const LOST: Ended = { result: "lost" };

export class LeaseEnds {
  readonly #store: KeyStore;
  readonly #clock: Clock;
  readonly #parts: LeaseEndsParts;
  readonly #leases: OwnLeases;

  constructor(parts: LeaseEndsParts) {
    this.#store = parts.store;
    this.#clock = parts.store.clock;
    this.#leases = parts.leases;
    this.#parts = parts;
  }

  async settle(settlement: Settlement, next?: NextRequest): Promise<Ended> {
    const { lease } = settlement;
    const held = this.#leases.find(lease) ?? (await adopt(this.#store, this.#parts.sessions, this.#leases, lease));
    if (held === undefined) return LOST;
    return await this.#end(held, settlement, next);
  }

  /** Whether the key of a lease may go on with its next run: its turn is not over. */
  mayGoOn({ handle }: Settlement["lease"]): boolean {
    const held = this.#leases.own(handle);
    return held !== undefined && this.#clock.monotonic() - held.turnSince < MOST_TURN_MS;
  }

  /** Gives back a grant that nobody took. */
  async release(held: Held): Promise<void> {
    if (!held.over) await this.#end(held, { ending: { type: "unused" } });
  }

  /** Ends a lease whose item is not to be run, and says nothing about it. */
  async drop(held: Held): Promise<void> {
    await this.#end(held, { ending: { type: "void" } });
  }

  async #end(held: Held, report: Report, next?: NextRequest): Promise<Ended> {
    this.#leases.lose(held);
    held.isEnding = true;
    try {
      if (!held.isClear) await held.cleared();
      for (;;) {
        const ended = await this.#tryEnd(held, report, next);
        if (ended !== undefined) return ended;
      }
    } catch (error) {
      // Nothing is certain: the lease is this process's until it runs out, and may be settled again.
      this.#leases.keep(held);
      throw error;
    }
  }

  /** Undefined: the key stands otherwise now, and is still this lease's. */
  async #tryEnd(held: Held, report: Report, wanted: NextRequest | undefined): Promise<Ended | undefined> {
    const store = this.#store;
    const { key } = held;
    const { state } = held.seen;
    const isGood = (): boolean => this.#leases.isGood(held);
    if (!isGood()) {
      this.#leases.expire(held);
      return LOST;
    }
    const now = this.#clock.wall();
    const { items, todo, alone } = end(key, state, report, now);
    const isClosing = state.more === "closing";
    const isOver = isClosing && (await store.isLineOver(key, state));
    const look = state.more === false || isOver ? NO_LOOK : await this.#look(held, items);
    const bare: KeyState = { ...state, todo: [], alone, more: isOver ? false : state.more };
    let left = free(bare, items, look.heads, store.levels, now);
    if (left.kind === "idle" && state.more === true) {
      // Somebody may have joined since the look: say first that nobody may join in silence, then look again.
      return (await rewriteHeld(store, held, { ...state, todo: [], more: "closing" })) ? undefined : LOST;
    }
    const isOutOfLine = left.kind === "ready" && left.takenLeft > state.takenLeft;
    const along = isOutOfLine ? takeAlong(left, look, store.room) : { state: left, isAll: false };
    left = along.state;
    const next = wanted === undefined ? undefined : await this.#nextOf(held, wanted, left);
    // Only what a written state has taken may be removed: the write that is about to take more may be refused.
    if (isClosing || state.takenLeft > (next === undefined ? 0 : MOST_TAKEN_LEFT)) {
      if (!isClosing && state.takenLeft > 0) await store.purgeTaken(key, state.taken);
      left = { ...left, takenLeft: left.takenLeft - state.takenLeft };
    }
    if (next !== undefined) {
      left = start(left, next.lease, next.most);
      // Whoever joins now says so; if nobody does, one look in the end is enough.
      if (along.isAll) left = { ...left, more: "closing" };
    }
    if (left.kind === "idle") left = { ...left, taken: [] };
    const writing = writeHeld(store, held, { ...left, todo: [...left.todo, ...todo] }, isGood);
    // Nobody waits for this look before the write; in the rare case it is taken back.
    const isUrgentReady = next === undefined ? undefined : this.#isUrgentReady(left);
    const written = await (next === undefined ? writing : this.#orGiveUp(writing, held, next));
    if (written === undefined) return (await lookAgain(store, held)) ? undefined : LOST;
    if (written.state.kind === "idle") return SETTLED;
    await store.perform(key, written.state);
    const seen = await store.sayDone(key, written);
    if (written.state.kind === "held") store.background(this.#parts.freeing.freeOfDead(key));
    if (next !== undefined) {
      const { session, since, lease } = next;
      const taken = { key, seen, session, worker: lease.worker, since, turnSince: held.turnSince, hasLooked: true };
      const goesOn = this.#leases.take(taken);
      if ((await isUrgentReady) === false) return { result: "settled", next: goesOn };
      // If this fails it is here, and runs out.
      await this.release(goesOn).catch(() => undefined);
      return SETTLED;
    }
    // Whoever starts a ready key removes it.
    if (written.state.takenLeft > 0 && written.state.kind !== "ready")
      store.background(store.purgeTaken(key, written.state.taken));
    return SETTLED;
  }

  /** Undefined: nothing of the key is ready, or what is may not be to run. */
  async #nextOf(held: Held, { worker, leaseMs, items = 1 }: NextRequest, left: KeyState): Promise<Next | undefined> {
    if (left.kind !== "ready") return undefined;
    const most = (await this.#store.untilVoid(left.items.slice(0, items))).length;
    if (most === 0) return undefined;
    const isSame = held.session.leaseMs === leaseMs && !held.session.dead;
    const session = isSame ? held.session : await this.#parts.sessions.get(leaseMs);
    const since = sinceOf(session, this.#clock);
    return { lease: newLease(this.#store, session, worker, since), most, session, since };
  }

  /** If it is not known whether the next lease was written, nobody is told of it, and it does not stay. */
  async #orGiveUp(
    writing: Promise<Seen | undefined>,
    { key, fence }: Held,
    { lease }: Next,
  ): Promise<Seen | undefined> {
    try {
      return await writing;
    } catch (error) {
      if (error instanceof OutcomeUnknown)
        this.#store.background(this.#parts.freeing.giveUpNextSurely(key, lease.nonce, fence));
      throw error;
    }
  }

  /** Something more urgent goes before what a key goes on with. */
  async #isUrgentReady({ items: [first] }: KeyState): Promise<boolean> {
    const level = first?.level ?? 0;
    return level > 0 && (await this.#store.isReadyAbove(level).catch(() => true));
  }

  /** What the key carries goes before what stands in line at its level and below: then nobody looks there. */
  async #look({ key, item, seen: { state }, hasLooked }: Held, carried: readonly KeyItem[]): Promise<Look> {
    const likely = item?.level ?? 0;
    if (carried.length === 0) return await lookAt(this.#store, key, state, likely);
    const level = Math.min(...carried.map((one) => one.level));
    if (hasLooked && level === likely && state.line >= level) return NO_LOOK;
    return { ...NO_LOOK, heads: await this.#store.heads(key, state, carried) };
  }
}
