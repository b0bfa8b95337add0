/** The leases that this process has, and when they run out. One timer for all. */
import { type Clock, elapsedMs, type Instant, type Timer } from "../../domain/clock.ts";
import type { Lease } from "../../engine/port.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { KeyItem } from "./state.ts";
import type { Streak } from "./streak.ts";

export interface Held {
  readonly key: string;
  readonly fence: number;
  readonly streak: Streak;
  /** Undefined for a hold. */
  readonly item: KeyItem | undefined;
  session: Session;
  readonly worker: string;
  leaseMs: number;
  since: Instant;
  over: boolean;
  /** Somebody took its item away while it was being started: nothing is to be said about its end. */
  silent: boolean;
}

export class OwnLeases {
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  /** A lease was neither renewed nor settled: this process itself has to put its key back. */
  readonly #ranOut: (held: Held) => void;
  /** By what the lease calls its handle, which is the entry itself. */
  readonly #held = new Map<unknown, Held>();
  /** Also those that are over. */
  readonly #own = new WeakSet();
  #timer: Timer | undefined;
  #plannedFor = 0;
  #closed = false;

  constructor(sessions: Sessions, clock: Clock, ranOut: (held: Held) => void) {
    this.#sessions = sessions;
    this.#clock = clock;
    this.#ranOut = ranOut;
  }

  get count(): number {
    return this.#held.size;
  }

  all(): Iterable<Held> {
    return this.#held.values();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  take(
    streak: Streak,
    item: KeyItem | undefined,
    fence: number,
    session: Session,
    worker: string,
    since: Instant,
  ): Held {
    const { key } = streak;
    const held: Held = {
      key,
      fence,
      streak,
      item,
      session,
      worker,
      leaseMs: session.leaseMs,
      since,
      over: false,
      silent: false,
    };
    this.#held.set(held, held);
    this.#own.add(held);
    this.#sessions.begin(session);
    this.#plan(session.leaseMs);
    return held;
  }

  find({ handle, fence }: Lease): Held | undefined {
    const held = this.#held.get(handle);
    if (held === undefined || held.fence !== fence || held.over || held.session.dead) return undefined;
    if (elapsedMs(this.#clock, held.since) < held.leaseMs) return held;
    this.expire(held);
    return undefined;
  }

  /** Whether a lease was made through this handle, also one that is over. */
  isOwn(handle: unknown): boolean {
    return typeof handle === "object" && handle !== null && this.#own.has(handle);
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
    this.#held.set(held, held);
    this.#sessions.begin(held.session);
    this.#plan(Math.max(1, held.leaseMs - elapsedMs(this.#clock, held.since)));
  }

  /** It is over, or about to be. */
  lose(held: Held): void {
    held.over = true;
    if (this.#held.delete(held)) this.#sessions.end(held.session);
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
