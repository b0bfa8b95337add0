/** The leases that this process has, and when they run out. One timer for all. */
import { type Clock, elapsedMs, type Instant, type Timer } from "../../domain/clock.ts";
import { PassingMap } from "../../domain/passing.ts";
import type { Lease } from "../../engine/port.ts";
import { tokenOf } from "./key-token.ts";
import type { Session, Sessions } from "./sessions.ts";
import { coveredOf, type KeyItem, type Seen, type StateLease } from "./state.ts";

/** What becomes a lease: a record that was just written. */
export interface Taken {
  readonly key: string;
  readonly seen: Seen;
  readonly session: Session;
  readonly worker: string;
  readonly since: Instant;
  /** Since when its worker has had the key without a break, by the monotonic clock. */
  readonly turnSince?: number;
  /** Its line was looked at by whoever had the key before, and it was not ready in between. */
  readonly hasLooked?: boolean;
}

/** One of them. It is also what the lease calls its handle. */
export class Held {
  readonly owner: OwnLeases;
  readonly key: string;
  readonly fence: number;
  readonly worker: string;
  /** Since when its worker has had the key without a break, by the monotonic clock: from when a claim was answered with it. */
  turnSince: number;
  /** Nothing can have joined its line without a word that goes before what its state says (`KeyState.line`). */
  readonly hasLooked: boolean;
  /** Undefined for a hold. */
  readonly item: KeyItem | undefined;
  /** The others of its run, as they were when it began. */
  behind: readonly KeyItem[];
  /** As the key was last written or read. */
  seen: Seen;
  session: Session;
  leaseMs: number;
  since: Instant;
  over = false;
  /** It is being settled, and whoever does so says what ended. */
  isEnding = false;
  #clear: (() => Promise<void>) | undefined;
  #clearing: Promise<void> | undefined;
  #hurry: () => void = () => undefined;

  constructor(owner: OwnLeases, { key, seen, session, worker, since, ...more }: Taken) {
    const { kind, items, lease } = seen.state;
    this.owner = owner;
    this.key = key;
    this.seen = seen;
    this.fence = lease?.fence ?? 0;
    this.item = kind === "running" ? items[0] : undefined;
    this.behind = items.slice(1, coveredOf(seen.state));
    this.session = session;
    this.worker = worker;
    this.leaseMs = session.leaseMs;
    this.since = since;
    this.turnSince = more.turnSince ?? since.monotonic;
    this.hasLooked = more.hasLooked === true;
  }

  /** Whether this is what a record calls its lease. */
  isMine(lease: StateLease | undefined): boolean {
    return lease?.fence === this.fence;
  }

  /** Nothing lies below its record any more. Until then an end must not be written: what lies below would come to light when that vanishes. */
  get isClear(): boolean {
    return this.#clear === undefined;
  }

  /** Removes what lies below its record; that may take its time until somebody is in a hurry. */
  clear(remove: () => Promise<unknown>, hurry: () => void): void {
    this.#hurry = hurry;
    this.#clear = async () => {
      await remove();
      this.#clear = undefined;
      this.seen = { sequence: this.seen.sequence, state: { ...this.seen.state, below: [] } };
    };
    this.#clearing = this.#clear();
    // Whoever settles hears of it, and tries again.
    this.#clearing.catch(() => undefined);
  }

  /** Resolves when that is done; when it failed, it is tried once more. */
  async cleared(): Promise<void> {
    if (this.#clear === undefined) return;
    this.#hurry();
    await this.#clearing?.catch(() => this.#clear?.());
  }
}

export class OwnLeases {
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  /** A lease was neither renewed nor settled: this process itself has to put its key back. */
  readonly #ranOut: (held: Held) => void;
  /** The last one has ended. */
  readonly #emptied: () => void;
  /** Those that are not over, by key: of each there is one that counts. */
  readonly #held = new PassingMap<string, Held>();
  #timer: Timer | undefined;
  #plannedFor = 0;
  #closed = false;

  constructor(clock: Clock, sessions: Sessions, ranOut: (held: Held) => void, emptied: () => void) {
    this.#sessions = sessions;
    this.#clock = clock;
    this.#ranOut = ranOut;
    this.#emptied = emptied;
  }

  get count(): number {
    return this.#held.size;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  /** All that was begun in the background is done. */
  async quiet(): Promise<void> {
    await Promise.allSettled(this.#held.values().map((held) => held.cleared()));
  }

  take(taken: Taken): Held {
    const held = new Held(this, taken);
    this.#begin(held);
    this.#plan(held.leaseMs);
    return held;
  }

  /** Also of one that another handle made and this one took over, or that went out and came back as data. */
  find({ handle, key, fence }: Lease): Held | undefined {
    const held = this.own(handle) ?? this.#held.get(tokenOf(key));
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
    // Unless the key is this process's again.
    if ((this.#held.get(held.key)?.fence ?? 0) > held.fence) return;
    held.over = false;
    held.isEnding = false;
    this.#begin(held);
    this.#plan(Math.max(1, held.leaseMs - elapsedMs(this.#clock, held.since)));
  }

  /** It is over, or about to be. */
  lose(held: Held): void {
    held.over = true;
    if (this.#held.get(held.key) !== held) return;
    this.#held.delete(held.key);
    this.#sessions.end(held.session);
    if (this.#held.size === 0) this.#emptied();
  }

  expire(held: Held): void {
    this.lose(held);
    this.#ranOut(held);
  }

  #begin(held: Held): void {
    const before = this.#held.get(held.key);
    if (before !== undefined && before !== held) this.lose(before);
    this.#held.set(held.key, held);
    this.#sessions.begin(held.session);
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
