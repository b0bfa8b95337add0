/**
 * A session stands for one process and one length of lease: one sign of life for all leases that the process holds. A lease
 * is good while its session is. How others see that it is not: `session-watch.ts`.
 */
import { type Clock, elapsedMs, type Instant, instant, pause, type Timer } from "../../domain/clock.ts";
import type { JetStream } from "./jetstream.ts";
import type { Nonces } from "./nonce.ts";
import { Lost } from "./requests.ts";
import { readable } from "./damage.ts";
import { isAlive, optionsOf, readLine, type SessionLine } from "./session-line.ts";
import { SessionWatch, type SessionWatchParts } from "./session-watch.ts";
import { lastToken, type QueueSubjects } from "./subjects.ts";

/** A lease may be given on a sign of life that is this old: watchers wait so much longer. */
const LEAST_SLACK_MS = 25;
const MOST_SLACK_MS = 1_000;
const SLACK_PART = 20;
const MOST_BEATS = 5;
const BEAT_PAUSE_MS = 20;

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

export class Sessions {
  readonly #js: JetStream;
  readonly #subjects: QueueSubjects;
  readonly #stream: string;
  readonly #clock: Clock;
  readonly #nonces: Nonces;
  readonly #others: SessionWatch;
  readonly #own = new Map<number, Session>();
  readonly #ids = new Set<string>();
  #pulse: Timer | undefined;
  #closed = false;

  constructor(parts: SessionWatchParts & { readonly nonces: Nonces }) {
    this.#js = parts.js;
    this.#subjects = parts.subjects;
    this.#stream = parts.stream;
    this.#clock = parts.clock;
    this.#nonces = parts.nonces;
    this.#others = new SessionWatch(parts, (id) => this.#ids.has(id));
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
  watch(): Promise<void> {
    return this.#others.begin();
  }

  async living(): Promise<ReadonlySet<string>> {
    const found = await this.#js.lastOfEach(this.#stream, this.#subjects.allSessions);
    return new Set(found.filter(isAlive).map(({ subject }) => lastToken(subject)));
  }

  async isAlive(id: string): Promise<boolean> {
    const last = await this.#js.last(this.#stream, this.#subjects.session(id));
    return last !== undefined && isAlive(last);
  }

  /** @param idle false when leases are left behind: they run out by themselves */
  async close(idle: boolean): Promise<void> {
    this.#closed = true;
    this.#pulse?.cancel();
    this.#others.close();
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
    const subject = this.#subjects.session(session.id);
    try {
      const result = await this.#js.put(subject, data, { ...optionsOf(line), expect: session.sequence });
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
    if (last === undefined && session.sequence === 0 && session.beat === 0) throw new Lost(subject);
    if (last === undefined || !isAlive(last)) {
      session.dead = true;
      return false;
    }
    session.sequence = last.sequence;
    // What somebody else wrote there is no sign, and the next one takes its place.
    const [{ beat } = { beat: 0 }] = readable([last.data], readLine);
    if (beat <= session.beat) {
      if (tries <= 1) throw new Lost(subject);
      await pause(this.#clock, BEAT_PAUSE_MS);
      return await this.#beat(session, tries - 1);
    }
    session.beat = beat;
    session.since = before;
    return true;
  }
}

export function slackOf(leaseMs: number): number {
  return Math.min(MOST_SLACK_MS, Math.max(LEAST_SLACK_MS, leaseMs / SLACK_PART));
}
