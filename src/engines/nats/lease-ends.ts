/** How leases end: what the report says becomes of the items, and the key is free, or its worker's for a further run by the same write. */
import type { Clock } from "../../domain/clock.ts";
import type { Settlement } from "../../engine/port.ts";
import { adopt } from "./adoption.ts";
import { end, type Report } from "./endings.ts";
import type { Freeing } from "./freeing.ts";
import { lookAgain, rewriteHeld, writeHeld } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import { type Look, lookAt, NO_LOOK, takeAlong } from "./look.ts";
import { newLease, sinceOf } from "./new-lease.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import { free, start } from "./rules.ts";
import type { Sessions } from "./sessions.ts";
import type { KeyItem, KeyState } from "./state.ts";

/** Items that were taken out of a line and are still in the stream, before they are removed together. */
const MOST_TAKEN_LEFT = 16;
/** A worker may go on with a key for so long; then it is another key's turn. */
const TURN_MS = 50;

/** What its worker asks for with the end of a run: the key's next one. */
export interface Next {
  readonly leaseMs: number;
  /** Of the run. */
  readonly items: number;
}

export interface Ended {
  readonly result: "settled" | "lost";
  /** The key's next run, if it was asked for, and its turn is not over. */
  readonly next?: Held;
}

export interface LeaseEndsParts {
  readonly store: KeyStore;
  readonly sessions: Sessions;
  readonly leases: OwnLeases;
  readonly freeing: Freeing;
  /** Whether a key of a more urgent level waits to be started. */
  readonly isUrgentReady: (level: number) => Promise<boolean>;
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

  async settle(settlement: Settlement, next?: Next): Promise<Ended> {
    const { lease } = settlement;
    const held = this.#leases.find(lease) ?? (await adopt(this.#store, this.#parts.sessions, this.#leases, lease));
    return held === undefined ? LOST : await this.#end(held, settlement, next);
  }

  /** Gives back a grant that nobody took. */
  async release(held: Held): Promise<void> {
    if (!held.over) await this.#end(held, { ending: { type: "unused" } });
  }

  /** Ends a lease whose item is not to be run, and says nothing about it. */
  async drop(held: Held): Promise<void> {
    await this.#end(held, { ending: { type: "void" } });
  }

  async #end(held: Held, report: Report, next?: Next): Promise<Ended> {
    this.#leases.lose(held);
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
  async #tryEnd(held: Held, report: Report, wanted: Next | undefined): Promise<Ended | undefined> {
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
    const most = await this.#mostOfNext(held, report, wanted, left);
    // Only what a written state has taken may be removed: the write that is about to take more may be refused.
    if (isClosing || state.takenLeft > (most > 0 ? MOST_TAKEN_LEFT : 0)) {
      if (!isClosing && state.takenLeft > 0) await store.purgeTaken(key, state.taken);
      left = { ...left, takenLeft: left.takenLeft - state.takenLeft };
    }
    const since = sinceOf(held.session, this.#clock);
    if (most > 0) {
      left = start(left, newLease(store, held.session, held.worker, since), most);
      // Whoever joins now says so; if nobody does, one look in the end is enough.
      if (along.isAll) left = { ...left, more: "closing" };
    }
    if (left.kind === "idle") left = { ...left, taken: [] };
    const written = await writeHeld(store, held, { ...left, todo: [...left.todo, ...todo] }, isGood);
    if (written === undefined) return (await lookAgain(store, held)) ? undefined : LOST;
    if (written.state.kind === "idle") return SETTLED;
    await store.perform(key, written.state);
    const seen = await store.sayDone(key, written);
    if (written.state.kind === "held") store.background(this.#parts.freeing.freeOfDead(key));
    if (most > 0) {
      const { session, worker, turnSince } = held;
      return { result: "settled", next: this.#leases.take({ key, seen, session, worker, since, turnSince }) };
    }
    // Whoever starts a ready key removes it.
    if (written.state.takenLeft > 0 && written.state.kind !== "ready")
      store.background(store.purgeTaken(key, written.state.taken));
    return SETTLED;
  }

  /** How many items the key's next run may have. 0: its turn is over, or it was not asked for, or something more urgent waits. */
  async #mostOfNext(held: Held, { ending }: Report, wanted: Next | undefined, left: KeyState): Promise<number> {
    const [first] = left.items;
    if (wanted === undefined || ending.type !== "done" || left.kind !== "ready" || first === undefined) return 0;
    const { session, turnSince } = held;
    const isOver = this.#clock.monotonic() - turnSince >= TURN_MS;
    if (isOver || session.dead || session.leaseMs !== wanted.leaseMs) return 0;
    if (await this.#parts.isUrgentReady(first.level)) return 0;
    return (await this.#store.untilVoid(left.items.slice(0, wanted.items))).length;
  }

  /** What the key carries goes before what stands in line at its level and below: then nobody looks there. */
  async #look({ key, item, seen: { state } }: Held, carried: readonly KeyItem[]): Promise<Look> {
    if (carried.length === 0) return await lookAt(this.#store, key, state, item?.level ?? 0);
    return { ...NO_LOOK, heads: await this.#store.heads(key, state, carried) };
  }
}
