/**
 * A session stands for one process and one length of lease: one sign of life for all leases that the process holds. A lease
 * is good while its session is; whoever sees a session silent for its whole lapse says that it is gone, frees its leases, and then removes
 * it. Others leave that to them, unless they die over it.
 *
 * Silence is measured by the clock of whoever watches, from the last sign that it saw itself. No wall clock is compared,
 * so none can be stepped into handing out a key twice.
 */
import { type Clock, elapsedMs, type Instant, instant, pause, type Timer } from "../../domain/clock.ts";
import { asError } from "./as-error.ts";
import { ownJson, textOfBytes } from "./own-json.ts";
import type { PutOptions } from "./headers.ts";
import type { Stored } from "./api-replies.ts";
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
/** Of a message that is not there. */
const NOWHERE = 0;

interface SessionLine {
  readonly lapse: number;
  readonly beat: number;
  /** Somebody has said so, and frees its leases. */
  readonly gone?: true;
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
  lapse: number;
  beat: number;
  /** Somebody has said so… */
  gone: boolean;
  /** …or this process is about to. */
  isOurs: boolean;
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
  #isLooking = false;
  #pulse: Timer | undefined;
  #lastLook: Timer | undefined;
  /** By the monotonic clock. */
  #lastLookAt = 0;
  #restUntil = 0;
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
    this.#timer?.cancel();
    this.#pulse?.cancel();
    this.#lastLook?.cancel();
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
    this.#meet(id, readLine(data));
  }

  /** Whoever says that a session is gone has a lapse of time to free its leases; then the others come, and not all at once. */
  #meet(id: string, { lapse, beat, gone: isGone }: SessionLine): void {
    const gone = isGone === true;
    const watched = this.#watched.get(id);
    if (gone && watched?.isOurs === true) return;
    const jitter = this.#random() * (gone ? lapse : MOST_JITTER_MS);
    const heard: Watched = { lapse, beat, gone, isOurs: false, since: this.#clock.monotonic(), jitter };
    if (watched === undefined) this.#watched.set(id, heard);
    else Object.assign(watched, { ...heard, beat: Math.max(beat, watched.beat) });
    this.#plan();
  }

  #watchAnew(): void {
    const now = this.#clock.monotonic();
    for (const watched of this.#watched.values()) {
      watched.since = now;
      // What was said of it may be long ago.
      watched.gone = false;
    }
    if (this.#subscription !== undefined && !this.#closed) this.#meetAll().catch(() => undefined);
  }

  async #meetAll(): Promise<void> {
    for (const { subject, data } of await this.#js.lastOfEach(this.#stream, this.#subjects.allSessions)) {
      const id = lastToken(subject);
      if (!this.#ids.has(id) && !this.#watched.has(id)) this.#meet(id, readLine(data));
    }
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#isLooking || this.#closed || this.#watched.size === 0) return;
    const now = this.#clock.monotonic();
    let at = Number.POSITIVE_INFINITY;
    for (const { since, lapse, jitter } of this.#watched.values()) at = Math.min(at, since + lapse + jitter);
    this.#timer = this.#clock.setTimer(Math.max(at - now, this.#restUntil - now, 1), () => {
      this.#timer = undefined;
      this.#isLooking = true;
      this.#look()
        // One that cannot be asked about, or freed, now is not left alone; but nor is the server.
        .catch(() => (this.#restUntil = this.#clock.monotonic() + REAP_MS))
        .finally(() => {
          this.#isLooking = false;
          this.#plan();
        });
    });
  }

  #isHeard({ since, lapse, jitter }: Watched): boolean {
    return this.#clock.monotonic() - since < lapse + jitter;
  }

  async #look(): Promise<void> {
    const gone = new Map<string, number>();
    let longest = 0;
    let failure: unknown;
    for (const [id, watched] of this.#watched) {
      if (this.#isHeard(watched)) continue;
      const sequence = await this.#buried(id, watched).catch((error: unknown) => void (failure = error));
      if (sequence === undefined) continue;
      gone.set(id, sequence);
      longest = Math.max(longest, watched.lapse);
    }
    if (gone.size > 0) {
      await this.#reap();
      if (this.#closed) return;
      this.#lookOnceMore(longest);
      for (const [id, sequence] of gone) {
        if (sequence !== NOWHERE) await this.#js.remove(this.#stream, sequence);
        this.#watched.delete(id);
      }
    }
    if (failure !== undefined) throw asError(failure);
  }

  /** A lease of theirs may have been on its way for as long as it could last. */
  #lookOnceMore(afterMs: number): void {
    const at = this.#clock.monotonic() + afterMs;
    if (at <= this.#lastLookAt) return;
    this.#lastLook?.cancel();
    this.#lastLookAt = at;
    this.#lastLook = this.#clock.setTimer(afterMs, () => void this.#reapSurely());
  }

  /** The sequence of the message that says that it is gone, or that there is none, if its leases are to be freed here. */
  async #buried(id: string, watched: Watched): Promise<number | undefined> {
    const known = watched.beat;
    const subject = this.#subjects.session(id);
    const last = await this.#js.last(this.#stream, subject);
    if (last === undefined) {
      // Only who was heard to bury it has freed its leases for certain; it may have been closed, or have outlived its time unwatched.
      if (!watched.gone) return NOWHERE;
      this.#watched.delete(id);
      return undefined;
    }
    const line = readLine(last.data);
    if (line.beat > known || (line.gone === true && !watched.gone && !watched.isOurs)) {
      this.#meet(id, line);
      return undefined;
    }
    if (line.gone === true) return last.sequence;
    // It may have been heard of while this was read.
    if (this.#isHeard(watched)) return undefined;
    return await this.#bury(id, watched, line, last.sequence);
  }

  /** A sign of life meanwhile has another sequence, and outlives this. */
  async #bury(id: string, watched: Watched, line: SessionLine, sequence: number): Promise<number | undefined> {
    watched.isOurs = true;
    const said = JSON.stringify({ ...line, gone: true } satisfies SessionLine);
    try {
      const options = { ...optionsOf(line), expect: sequence };
      const result = await this.#js.put(this.#subjects.session(id), said, options);
      if (!result.refused) return result.sequence;
      watched.isOurs = false;
      return undefined;
    } catch (error) {
      if (error instanceof Lost) throw error;
      // There is no room for another word, but there is for one less.
      return (await this.#js.remove(this.#stream, sequence)) ? NOWHERE : undefined;
    }
  }
}

export function slackOf(leaseMs: number): number {
  return Math.min(MOST_SLACK_MS, Math.max(LEAST_SLACK_MS, leaseMs / SLACK_PART));
}

/** Left behind by a process that died while nobody watched, it vanishes in the end. */
function optionsOf({ lapse }: SessionLine): Pick<PutOptions, "rollup" | "ttlSeconds"> {
  return { rollup: true, ttlSeconds: Math.max(LEAST_TTL_SECONDS, Math.ceil((LONGEST_LAPSES * lapse) / 1_000)) };
}

function isAlive({ data }: Stored): boolean {
  return readLine(data).gone !== true;
}

function readLine(data: Uint8Array): SessionLine {
  return ownJson<SessionLine>(textOfBytes(data));
}
