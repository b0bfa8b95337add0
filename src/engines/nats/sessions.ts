/**
 * A session stands for one process and one length of lease: one sign of life for all leases that the process holds. A lease
 * is good while its session is; whoever sees a session silent for its whole lapse removes it, and then frees its leases.
 *
 * Silence is measured by the clock of whoever watches, from the last sign that it saw itself. No wall clock is compared,
 * so none can be stepped into handing out a key twice.
 */
import { type Clock, elapsedMs, type Instant, instant, pause, type Timer } from "../../domain/clock.ts";
import { ownJson, textOfBytes } from "./own-json.ts";
import type { JetStream } from "./jetstream.ts";
import type { Nonces } from "./nonce.ts";
import { Lost } from "./requests.ts";
import { lastToken, type QueueSubjects } from "./subjects.ts";
import type { Delivery, Subscription, Wire } from "./wire.ts";

/** A lease may be given on a sign of life that is this old: watchers wait so much longer. */
const LEAST_SLACK_MS = 25;
const MOST_SLACK_MS = 1_000;
const SLACK_PART = 20;
/** Left behind by a process that died while nobody watched. */
const LONGEST_LAPSES = 20;
const LEAST_TTL_SECONDS = 60;
const MOST_BEATS = 5;
const BEAT_PAUSE_MS = 20;
/** Between two tries to free what the dead have left. */
const REAP_MS = 1_000;
/** Watchers do not all act at once. */
const MOST_JITTER_MS = 200;

interface SessionLine {
  readonly lapse: number;
  readonly beat: number;
}

export interface Session {
  readonly id: string;
  readonly leaseMs: number;
  /** Of the last sign of life, read before it was sent. */
  since: Instant;
  sequence: number;
  beat: number;
  dead: boolean;
  beating: Promise<boolean> | undefined;
  /** Leases that depend on it. While there are any, it gives signs of life by itself. */
  leases: number;
}

interface Watched {
  readonly lapse: number;
  beat: number;
  since: number;
  jitter: number;
}

export class Sessions {
  readonly #js: JetStream;
  readonly #wire: Wire;
  readonly #subjects: QueueSubjects;
  readonly #stream: string;
  readonly #clock: Clock;
  readonly #nonces: Nonces;
  readonly #random: () => number;
  /** Frees the leases of sessions that are gone. */
  readonly #reap: () => Promise<void>;
  readonly #own = new Map<number, Session>();
  readonly #ids = new Set<string>();
  readonly #watched = new Map<string, Watched>();
  #subscription: Subscription | undefined;
  #timer: Timer | undefined;
  #pulse: Timer | undefined;
  #closed = false;

  constructor(parts: {
    readonly js: JetStream;
    readonly wire: Wire;
    readonly subjects: QueueSubjects;
    readonly stream: string;
    readonly clock: Clock;
    readonly nonces: Nonces;
    readonly random: () => number;
    readonly reap: () => Promise<void>;
  }) {
    this.#js = parts.js;
    this.#wire = parts.wire;
    this.#subjects = parts.subjects;
    this.#stream = parts.stream;
    this.#clock = parts.clock;
    this.#nonces = parts.nonces;
    this.#random = parts.random;
    this.#reap = parts.reap;
    this.#wire.watch((up) => {
      // Whatever was said while this process was away was not heard here.
      if (up) this.#watchAnew();
    });
  }

  /** A session that is alive, and was a moment ago. */
  async get(leaseMs: number): Promise<Session> {
    const current = this.current(leaseMs);
    if (current !== undefined) return current;
    let session = this.#own.get(leaseMs);
    if (session === undefined || session.dead) {
      session = {
        id: this.#nonces.next(),
        leaseMs,
        since: instant(this.#clock),
        sequence: 0,
        beat: 0,
        dead: false,
        beating: undefined,
        leases: 0,
      };
      this.#own.set(leaseMs, session);
      this.#ids.add(session.id);
    }
    return (await this.beat(session)) ? session : await this.get(leaseMs);
  }

  /** The same, if no sign of life has to be given for it. */
  current(leaseMs: number): Session | undefined {
    const session = this.#own.get(leaseMs);
    if (session === undefined || session.dead || session.sequence === 0) return undefined;
    return elapsedMs(this.#clock, session.since) <= slackOf(leaseMs) ? session : undefined;
  }

  /** One that cannot have been taken for dead yet. Whatever rests on it needs a sign of life first, or at the same time. */
  likely(leaseMs: number): Session | undefined {
    const session = this.#own.get(leaseMs);
    if (session === undefined || session.dead || session.sequence === 0) return undefined;
    return elapsedMs(this.#clock, session.since) < leaseMs ? session : undefined;
  }

  /** A sign of life. False: the session is dead, and so are its leases. */
  async beat(session: Session): Promise<boolean> {
    if (session.dead) return false;
    session.beating ??= this.#beat(session).finally(() => {
      session.beating = undefined;
    });
    return await session.beating;
  }

  begin(session: Session): void {
    session.leases += 1;
    this.#keepBeating();
  }

  end(session: Session): void {
    session.leases -= 1;
  }

  /** Begins to watch the sessions of others, and frees what those that are gone have left. */
  async watch(): Promise<void> {
    if (this.#subscription !== undefined || this.#closed) return;
    this.#subscription = this.#wire.subscribe(this.#subjects.allSessions, (delivery) => this.#hear(delivery));
    await this.#reapSurely();
    await this.#meetAll();
  }

  async #reapSurely(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#reap();
        return;
      } catch {
        await pause(this.#clock, REAP_MS);
      }
    }
  }

  async living(): Promise<ReadonlySet<string>> {
    const subjects = await this.#js.subjects(this.#stream, this.#subjects.allSessions);
    return new Set([...subjects.keys()].map(lastToken));
  }

  async isAlive(id: string): Promise<boolean> {
    return (await this.#js.last(this.#stream, this.#subjects.session(id))) !== undefined;
  }

  /** @param idle false when leases are left behind: they run out by themselves */
  async close(idle: boolean): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#pulse?.cancel();
    this.#subscription?.unsubscribe();
    const sessions = [...this.#own.values()].filter(({ dead, sequence }) => !dead && sequence !== 0);
    for (const session of sessions) session.dead = true;
    if (idle) await Promise.allSettled(sessions.map(({ sequence }) => this.#js.remove(this.#stream, sequence)));
  }

  #keepBeating(): void {
    if (this.#pulse !== undefined || this.#closed) return;
    const inUse = [...this.#own.values()].filter(({ leases, dead }) => leases > 0 && !dead);
    if (inUse.length === 0) return;
    const waits = inUse.map(({ since, leaseMs }) => leaseMs / 3 - elapsedMs(this.#clock, since));
    this.#pulse = this.#clock.setTimer(Math.max(Math.min(...waits), 5), () => {
      this.#pulse = undefined;
      const due = inUse.filter(({ since, leaseMs }) => elapsedMs(this.#clock, since) >= leaseMs / 3 - 1);
      Promise.allSettled(due.map((session) => this.beat(session))).then(
        () => this.#keepBeating(),
        () => undefined,
      );
    });
  }

  async #beat(session: Session, tries = MOST_BEATS): Promise<boolean> {
    const before = instant(this.#clock);
    const line: SessionLine = { lapse: session.leaseMs + slackOf(session.leaseMs), beat: session.beat + 1 };
    const data = JSON.stringify(line);
    const ttlSeconds = Math.max(LEAST_TTL_SECONDS, Math.ceil((LONGEST_LAPSES * line.lapse) / 1_000));
    const subject = this.#subjects.session(session.id);
    try {
      const result = await this.#js.put(subject, data, { expect: session.sequence, rollup: true, ttlSeconds });
      if (!result.refused) {
        session.sequence = result.sequence;
        session.beat += 1;
        session.since = before;
        return true;
      }
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
    }
    // Perhaps it was this very sign, or one before it, whose reply was lost.
    const last = await this.#js.last(this.#stream, subject);
    if (last === undefined) {
      if (session.sequence === 0 && session.beat === 0) throw new Lost(subject);
      session.dead = true;
      return false;
    }
    session.sequence = last.sequence;
    const { beat } = readLine(last.data);
    if (beat <= session.beat) {
      if (tries <= 1) throw new Lost(subject);
      await pause(this.#clock, BEAT_PAUSE_MS);
      return await this.#beat(session, tries - 1);
    }
    session.beat = beat;
    session.since = before;
    return true;
  }

  #hear({ subject, data }: Delivery): void {
    const id = lastToken(subject);
    if (this.#ids.has(id)) return;
    const { lapse, beat } = readLine(data);
    this.#meet(id, lapse, beat);
  }

  #meet(id: string, lapse: number, beat: number): void {
    const watched = this.#watched.get(id);
    if (watched === undefined) {
      this.#watched.set(id, { lapse, beat, since: this.#clock.monotonic(), jitter: this.#random() * MOST_JITTER_MS });
    } else {
      watched.since = this.#clock.monotonic();
      watched.beat = Math.max(beat, watched.beat);
    }
    this.#plan();
  }

  #watchAnew(): void {
    const now = this.#clock.monotonic();
    for (const watched of this.#watched.values()) watched.since = now;
    if (this.#subscription !== undefined && !this.#closed) this.#meetAll().catch(() => undefined);
  }

  async #meetAll(): Promise<void> {
    for (const { subject, data } of await this.#js.lastOfEach(this.#stream, this.#subjects.allSessions)) {
      const id = lastToken(subject);
      const { lapse, beat } = readLine(data);
      if (!this.#ids.has(id) && !this.#watched.has(id)) this.#meet(id, lapse, beat);
    }
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#closed || this.#watched.size === 0) return;
    const now = this.#clock.monotonic();
    let wait = Number.POSITIVE_INFINITY;
    for (const { since, lapse, jitter } of this.#watched.values()) wait = Math.min(wait, since + lapse + jitter - now);
    this.#timer = this.#clock.setTimer(Math.max(wait, 1), () => {
      this.#timer = undefined;
      this.#look()
        .catch(() => undefined)
        .finally(() => this.#plan());
    });
  }

  #isHeard({ since, lapse, jitter }: Watched): boolean {
    return this.#clock.monotonic() - since < lapse + jitter;
  }

  async #look(): Promise<void> {
    let gone = false;
    for (const [id, watched] of this.#watched) {
      if (this.#isHeard(watched)) continue;
      const known = watched.beat;
      const last = await this.#js.last(this.#stream, this.#subjects.session(id));
      if (last !== undefined) {
        const { beat } = readLine(last.data);
        if (beat > known) {
          watched.beat = Math.max(beat, watched.beat);
          watched.since = this.#clock.monotonic();
          continue;
        }
        // It may have been heard of while this was read.
        if (this.#isHeard(watched)) continue;
        // A sign of life meanwhile has another sequence, and outlives this.
        if (!(await this.#js.remove(this.#stream, last.sequence))) continue;
      }
      this.#watched.delete(id);
      gone = true;
    }
    if (gone) await this.#reapSurely();
  }
}

export function slackOf(leaseMs: number): number {
  return Math.min(MOST_SLACK_MS, Math.max(LEAST_SLACK_MS, leaseMs / SLACK_PART));
}

function readLine(data: Uint8Array): SessionLine {
  return ownJson<SessionLine>(textOfBytes(data));
}
