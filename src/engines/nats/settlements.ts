/**
 * Settles leases. There are four ways, the quickest first: the end of a brief lease is an acknowledgement; the end of the last item that a key has
 * is one write; the key's next item starts before the end of this one is written; or the end is written as the key stands, after a look.
 */
import type { Clock } from "../../domain/clock.ts";
import type { Settlement, SettleResult } from "../../engine/port.ts";
import { adopt } from "./adoption.ts";
import { asError } from "./as-error.ts";
import type { BriefLeases } from "./brief-leases.ts";
import { isWhole, leavesNothing, type Report } from "./endings.ts";
import type { GoingOn } from "./going-on.ts";
import { lookAgain, perhapsWritten } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import type { LeaseEnds } from "./lease-ends.ts";
import { newLease, sinceOf } from "./new-lease.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import type { Sessions } from "./sessions.ts";
import { type KeyItem, NOTHING } from "./state.ts";

export interface SettlementHooks {
  /** Whether a key's next item may begin before that is written. */
  readonly mayRunAhead: () => boolean;
  /** A grant that nobody asked for yet. */
  readonly reserve: (held: Held) => void;
}

export class Settlements {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #leases: OwnLeases;
  readonly #briefs: BriefLeases;
  readonly #ends: LeaseEnds;
  readonly #goingOn: GoingOn;
  readonly #hooks: SettlementHooks;

  constructor(
    store: KeyStore,
    sessions: Sessions,
    leases: OwnLeases,
    briefs: BriefLeases,
    ends: LeaseEnds,
    goingOn: GoingOn,
    hooks: SettlementHooks,
  ) {
    this.#store = store;
    this.#sessions = sessions;
    this.#clock = store.clock;
    this.#leases = leases;
    this.#briefs = briefs;
    this.#ends = ends;
    this.#goingOn = goingOn;
    this.#hooks = hooks;
  }

  settle(settlement: Settlement): Promise<SettleResult> {
    const held = this.#leases.find(settlement.lease);
    return (held === undefined ? undefined : this.#endLast(held, settlement)) ?? this.#settle(settlement, true);
  }

  /** All that the key has is done, and nothing has to be looked up before that is written. Undefined: there is more to it. */
  #endLast(held: Held, report: Report): Promise<SettleResult> | undefined {
    const { key, streak, item } = held;
    if (report.ending.type !== "done" || held.silent || item === undefined) return undefined;
    if (!streak.isLast(item) && !isWhole(key, streak.seen.state, report)) return undefined;
    this.#leases.lose(held);
    if (this.#briefs.has(held)) return this.#endBrief(held, report);
    if (streak.isAhead) return this.#finish(held, item, report);
    if (streak.isReady) return this.#endNow(held, report);
    return streak.ready.then(
      () => this.#endNow(held, report),
      () => this.#endAgain(held, report),
    );
  }

  #endBrief(held: Held, report: Report): Promise<SettleResult> {
    const keep = (error: unknown): never => {
      // Nothing is certain: the lease is this process's until it runs out, and may be settled again.
      this.#leases.keep(held);
      throw asError(error);
    };
    return this.#briefs.end(held).then((result) => result ?? this.#ends.end(held, report).catch(keep), keep);
  }

  #endNow(held: Held, report: Report): Promise<SettleResult> {
    const { key, streak } = held;
    const { seen } = streak;
    const isGood = (): boolean => this.#leases.isGood(held);
    // It may have been waited, and others may have come.
    if (!isGood() || !(leavesNothing(seen.state) || isWhole(key, seen.state, report)))
      return this.#endAgain(held, report);
    return this.#store.write(key, seen, NOTHING, isGood).then(
      (written) => (written === undefined ? this.#endAgain(held, report) : "settled"),
      (error: unknown) => this.#endAgain(held, report, asError(error)),
    );
  }

  /** What ran before it is not written yet: it ends by the same write. */
  #finish(held: Held, item: KeyItem, report: Report): Promise<SettleResult> {
    return held.streak
      .finish(item, () => this.#leases.isGood(held))
      .then(
        (written) => (written ? "settled" : this.#endAgain(held, report)),
        (error: unknown) => this.#endAgain(held, report, asError(error)),
      );
  }

  /** As any other end, after a look at how the key stands. */
  async #endAgain(held: Held, report: Report, error?: Error): Promise<SettleResult> {
    try {
      if (error !== undefined) await perhapsWritten(this.#store, held, NOTHING, error);
      return (await lookAgain(this.#store, held)) ? await this.#ends.end(held, report) : "lost";
    } catch (failure) {
      // Nothing is certain: the lease is this process's until it runs out, and may be settled again.
      this.#leases.keep(held);
      throw asError(failure);
    }
  }

  /** @param mayWait whether it may be waited once until what is done before it is written */
  async #settle(settlement: Settlement, mayWait: boolean): Promise<SettleResult> {
    const { lease, ending } = settlement;
    const before = this.#leases.own(lease.handle);
    if (before?.hasGoneOn === true) return await before.streak.again(before.item?.unique ?? "");
    const held = this.#leases.find(lease) ?? (await adopt(this.#store, this.#sessions, this.#leases, lease));
    if (held === undefined) return "lost";
    if (held.silent) {
      await this.#ends.drop(held);
      return "lost";
    }
    const ahead = this.#runAhead(held, ending);
    if (ahead !== undefined) {
      this.#goingOn.delete(held);
      return await ahead;
    }
    const mayGoOn =
      this.#goingOn.may(held, ending) &&
      (held.streak.seen.state.items.length > 1 || held.streak.seen.state.more !== false);
    if (mayWait && mayGoOn && held.streak.isAhead) return await this.#settleBehind(held, settlement);
    this.#leases.lose(held);
    if (mayGoOn) this.#goingOn.add(held);
    // It had a slot, and does not go on after all.
    else this.#goingOn.leave(held);
    try {
      return await this.#ends.end(held, settlement);
    } catch (error) {
      // Nothing is certain: the lease is this process's until it runs out, and may be settled again.
      this.#leases.keep(held);
      throw error;
    } finally {
      this.#goingOn.leave(held);
    }
  }

  /** The streak is as far ahead of what is written as it may be: once that is written, its next item may start as before. */
  async #settleBehind(held: Held, settlement: Settlement): Promise<SettleResult> {
    this.#goingOn.add(held);
    try {
      await held.streak.written();
      return await this.#settle(settlement, false);
    } finally {
      this.#goingOn.leave(held);
    }
  }

  /** The key's next item starts now. Undefined: it has to wait until this one's end is written. */
  #runAhead(held: Held, ending: Settlement["ending"]): Promise<SettleResult> | undefined {
    const { streak, item, session, worker } = held;
    if (ending.type !== "done" || item === undefined || !this.#goingOn.may(held, ending)) return undefined;
    if (!this.#hooks.mayRunAhead()) return undefined;
    const next = streak.next(item, held.fence, this.#clock.wall());
    if (next === undefined) return undefined;
    const since = sinceOf(session, this.#clock);
    const lease = { ...newLease(this.#store, session, worker, since), fence: next.fence };
    this.#leases.lose(held);
    held.hasGoneOn = true;
    const follower = this.#leases.take(streak, next.item, next.fence, session, worker, since);
    const settled = streak.advance(item.unique, held.fence, {
      item: next.item,
      lease,
      isGood: () => this.#leases.isGood(follower),
      takeAway: () => {
        follower.silent = true;
      },
    });
    this.#hooks.reserve(follower);
    return settled;
  }
}
