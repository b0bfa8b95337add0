/** The leases that this process has, and when they run out. One timer for all. */
import { type Clock, elapsedMs, type Instant, type Timer } from "../../domain/clock.ts";
import { PassingSet } from "../../domain/passing.ts";
import type { Lease } from "../../engine/port.ts";
import type { KeyStore } from "./key-store.ts";
import { LateWrites } from "./late-writes.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { KeyItem, Seen } from "./state.ts";
import { Streak } from "./streak.ts";

/** One of them. It is also what the lease calls its handle. */
export class Held {
  readonly owner: OwnLeases;
  readonly streak: Streak;
  /** Undefined for a hold. */
  readonly item: KeyItem | undefined;
  readonly fence: number;
  session: Session;
  readonly worker: string;
  leaseMs: number;
  since: Instant;
  over = false;
  /** Its key went on to its next item before its end was written. */
  hasGoneOn = false;
  /** Somebody took its item away while it was being started: nothing is to be said about its end. */
  silent = false;
  /** The most items of a run that its claim asked for. */
  mostItems = 1;
  /** The others of its run, as they were when it began. */
  behind: readonly KeyItem[] = [];

  constructor(
    owner: OwnLeases,
    streak: Streak,
    item: KeyItem | undefined,
    fence: number,
    session: Session,
    worker: string,
    since: Instant,
  ) {
    this.owner = owner;
    this.streak = streak;
    this.item = item;
    this.fence = fence;
    this.session = session;
    this.worker = worker;
    this.leaseMs = session.leaseMs;
    this.since = since;
  }

  get key(): string {
    return this.streak.key;
  }
}

export class OwnLeases {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  /** A lease was neither renewed nor settled: this process itself has to put its key back. */
  readonly #ranOut: (held: Held) => void;
  /** The last one has ended. */
  readonly #emptied: () => void;
  /** Those that are not over. */
  readonly #held = new PassingSet<Held>();
  readonly #lateWrites: LateWrites;
  #timer: Timer | undefined;
  #plannedFor = 0;
  #closed = false;

  constructor(store: KeyStore, sessions: Sessions, ranOut: (held: Held) => void, emptied: () => void) {
    this.#store = store;
    this.#sessions = sessions;
    this.#clock = store.clock;
    this.#lateWrites = new LateWrites(store.clock);
    this.#ranOut = ranOut;
    this.#emptied = emptied;
  }

  get count(): number {
    return this.#held.size;
  }

  /** What was settled is written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    const streaks = new Set(this.#held.values().map(({ streak }) => streak));
    this.#lateWrites.close();
    await Promise.allSettled(Array.from(streaks, (streak) => streak.written()));
  }

  /** All that was begun in the background is done. */
  async quiet(): Promise<void> {
    await Promise.allSettled(this.#held.values().map(({ streak }) => streak.ready));
  }

  /** The first lease of a streak: a key that was just written as this process's. */
  takeFirst(
    key: string,
    seen: Seen,
    session: Session,
    worker: string,
    since: Instant,
    begun: number = Number.NEGATIVE_INFINITY,
  ): Held {
    const streak = new Streak(this.#store, key, seen, begun, this.#lateWrites);
    return this.takeWritten(streak, session, worker, since);
  }

  /** A lease that stands in its streak's record. */
  takeWritten(streak: Streak, session: Session, worker: string, since: Instant): Held {
    const { kind, items, lease } = streak.seen.state;
    const item = kind === "running" ? items[0] : undefined;
    return this.take(streak, item, lease?.fence ?? 0, session, worker, since);
  }

  take(
    streak: Streak,
    item: KeyItem | undefined,
    fence: number,
    session: Session,
    worker: string,
    since: Instant,
  ): Held {
    const held = new Held(this, streak, item, fence, session, worker, since);
    this.#held.add(held);
    this.#sessions.begin(session);
    this.#plan(session.leaseMs);
    return held;
  }

  find({ handle, fence }: Lease): Held | undefined {
    const held = this.own(handle);
    if (held === undefined || held.fence !== fence || held.over || held.session.dead) return undefined;
    if (elapsedMs(this.#clock, held.since) < held.leaseMs) return held;
    this.expire(held);
    return undefined;
  }

  /** A lease that was made here, also one that is over. */
  own(handle: unknown): Held | undefined {
    return handle instanceof Held && handle.owner === this ? handle : undefined;
  }

  /** While this holds, nobody else can have the key. */
  isGood(held: Held): boolean {
    return !held.session.dead && elapsedMs(this.#clock, held.since) < held.leaseMs;
  }

  renew(held: Held, since: Instant, leaseMs: number): void {
    held.since = since;
    held.leaseMs = leaseMs;
    this.#plan(leaseMs - elapsedMs(this.#clock, since));
  }

  /** Its end failed, and nothing is certain: it is this process's until it runs out, and may be settled again. */
  keep(held: Held): void {
    held.over = false;
    this.#held.add(held);
    this.#sessions.begin(held.session);
    this.#plan(Math.max(1, held.leaseMs - elapsedMs(this.#clock, held.since)));
  }

  /** It is over, or about to be. */
  lose(held: Held): void {
    held.over = true;
    if (!this.#held.delete(held)) return;
    this.#sessions.end(held.session);
    if (this.#held.size === 0) this.#emptied();
  }

  expire(held: Held): void {
    this.lose(held);
    this.#ranOut(held);
  }

  #plan(leaseMs: number): void {
    const at = this.#clock.monotonic() + leaseMs + 1;
    if (this.#closed || (this.#timer !== undefined && this.#plannedFor <= at)) return;
    this.#timer?.cancel();
    this.#plannedFor = at;
    this.#timer = this.#clock.setTimer(leaseMs + 1, () => {
      this.#timer = undefined;
      this.#expireOver();
    });
  }

  #expireOver(): void {
    let next = Number.POSITIVE_INFINITY;
    for (const held of this.#held.values()) {
      const left = held.leaseMs - elapsedMs(this.#clock, held.since);
      if (left <= 0) this.expire(held);
      else next = Math.min(next, left);
    }
    if (next !== Number.POSITIVE_INFINITY) this.#plan(next);
  }
}
