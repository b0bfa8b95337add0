/** How the end of a lease is written: the key is free, or goes on to its next item by the same write. */
import type { Clock, Instant } from "../../domain/clock.ts";
import type { SettleResult } from "../../engine/port.ts";
import { end, type Report } from "./endings.ts";
import type { Freeing } from "./freeing.ts";
import type { GoingOn } from "./going-on.ts";
import { lookAgain, rewriteHeld, writeHeld } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import { type Look, lookAt, NO_LOOK, takeAlong } from "./look.ts";
import { newLease, sinceOf } from "./new-lease.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import { free, start } from "./rules.ts";
import type { KeyItem, KeyState, Seen } from "./state.ts";

/** Items that were taken out of a line and are still in the stream, before they are removed together. */
const MOST_TAKEN_LEFT = 16;

export class LeaseEnds {
  readonly #store: KeyStore;
  readonly #clock: Clock;
  readonly #leases: OwnLeases;
  readonly #freeing: Freeing;
  readonly #goingOn: GoingOn;
  /** A grant that nobody asked for yet. */
  readonly #reserve: (held: Held) => void;

  constructor(store: KeyStore, leases: OwnLeases, freeing: Freeing, goingOn: GoingOn, reserve: (held: Held) => void) {
    this.#store = store;
    this.#clock = store.clock;
    this.#leases = leases;
    this.#freeing = freeing;
    this.#goingOn = goingOn;
    this.#reserve = reserve;
  }

  /** Gives back a grant that nobody took. */
  async release(held: Held): Promise<void> {
    if (held.over) return;
    this.#leases.lose(held);
    await this.#orKeep(held, this.end(held, { ending: { type: "unused" } }, false));
  }

  /** Ends a lease whose item is not to be run, and says nothing about it. */
  async drop(held: Held): Promise<void> {
    this.#leases.lose(held);
    await this.#orKeep(held, this.end(held, { ending: { type: "void" } }, false));
  }

  /** When it fails, the lease is still here, and runs out. */
  async #orKeep(held: Held, ending: Promise<SettleResult>): Promise<void> {
    try {
      await ending;
    } catch (error) {
      this.#leases.keep(held);
      throw error;
    }
  }

  /** The lease ends; the key goes on as it must. */
  async end(held: Held, report: Report, goOn = true): Promise<SettleResult> {
    const store = this.#store;
    const { key } = held;
    const isGood = (): boolean => this.#leases.isGood(held);
    await held.streak.settleIn();
    if (held.streak.isAhead) await held.streak.written();
    for (;;) {
      if (!isGood()) {
        this.#leases.expire(held);
        return "lost";
      }
      const { state } = held.streak.seen;
      const now = this.#clock.wall();
      const { items, todo, alone } = end(key, state, report, now);
      const isOver = state.more === "closing" && (await store.isLineOver(key, state));
      const isPurged = state.more === "closing" && state.takenLeft > 0;
      const look = state.more === false || isOver ? NO_LOOK : await this.#look(held, items);
      const bare: KeyState = { ...state, todo: [], alone, more: isOver ? false : state.more };
      let next = free(bare, items, look.heads, store.levels, now);
      if (next.kind === "idle" && state.more === true) {
        // Somebody may have joined since the look: say first that nobody may join in silence, then look again.
        if (!(await rewriteHeld(store, held, { ...state, todo: [], more: "closing" }))) return "lost";
        continue;
      }
      const session = held.session;
      const goesOn =
        goOn && next.kind === "ready" && this.#goingOn.may(held, report.ending) && !(await store.isVoid(next.items[0]));
      // Its slot is for others.
      if (!goesOn) this.#goingOn.leave(held);
      const since = sinceOf(session, this.#clock);
      const isOutOfLine = next.kind === "ready" && next.takenLeft > state.takenLeft;
      const along = isOutOfLine ? takeAlong(next, look, store.room) : { state: next, isAll: false };
      next = along.state;
      // Only what a written state has taken may be removed: the write that is about to take more may be refused.
      if (isPurged || state.takenLeft > (goesOn ? MOST_TAKEN_LEFT : 0)) {
        if (!isPurged) await store.purgeTaken(key, state.taken);
        next = { ...next, takenLeft: next.takenLeft - state.takenLeft };
      }
      if (goesOn) {
        next = start(next, newLease(store, session, held.worker, since));
        // Whoever joins now says so; if nobody does, one look in the end is enough.
        if (along.isAll) next = { ...next, more: "closing" };
      }
      if (next.kind === "idle") next = { ...next, taken: [] };
      const sentAt = this.#clock.monotonic();
      const written = await writeHeld(store, held, { ...next, todo: [...next.todo, ...todo] }, isGood);
      if (written === undefined) {
        if (!(await lookAgain(store, held))) return "lost";
        continue;
      }
      let current = written;
      if (written.state.kind !== "idle") {
        await store.perform(key, written.state);
        current = await store.sayDone(key, written);
      }
      if (written.state.kind === "held") store.background(this.#freeing.freeOfDead(key));
      if (goesOn) this.#goOn(held, current, since, sentAt);
      // Whoever starts a ready key removes it.
      else if (written.state.takenLeft > 0 && written.state.kind !== "ready")
        store.background(store.purgeTaken(key, written.state.taken));
      return "settled";
    }
  }

  /** What the key carries goes before what stands in line at its level and below: then nobody looks there. */
  async #look({ key, item, streak }: Held, carried: readonly KeyItem[]): Promise<Look> {
    const { state } = streak.seen;
    if (carried.length === 0) return await lookAt(this.#store, key, state, item?.level ?? 0);
    return { ...NO_LOOK, heads: await this.#store.heads(key, state, carried) };
  }

  #goOn(before: Held, written: Seen, since: Instant, sentAt: number): void {
    before.streak.goOn(written, sentAt);
    this.#reserve(this.#leases.takeWritten(before.streak, before.session, before.worker, since));
  }
}
