/**
 * Watches the sessions of others. Whoever sees one silent for its whole lapse says that it is gone, frees its leases, and then removes
 * it. Others leave that to them, unless they die over it.
 *
 * Silence is measured by the clock of whoever watches, from the last sign that it saw itself. No wall clock is compared,
 * so none can be stepped into handing out a key twice.
 */
import { type Clock, pause, type Timer } from "../../domain/clock.ts";
import { asError } from "./as-error.ts";
import { readable } from "./damage.ts";
import type { JetStream } from "./jetstream.ts";
import { Lost } from "./requests.ts";
import { optionsOf, readLine, type SessionLine } from "./session-line.ts";
import { lastToken, type QueueSubjects } from "./subjects.ts";
import type { Delivery, Subscription, Wire } from "./wire.ts";

/** Between two tries to free what the dead have left. */
const REAP_MS = 1_000;
/** Watchers do not all act at once. */
const MOST_JITTER_MS = 200;
/** Of a message that is not there. */
const NOWHERE = 0;

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

export interface SessionWatchParts {
  readonly js: JetStream;
  readonly wire: Wire;
  readonly subjects: QueueSubjects;
  /** Where sessions are kept. */
  readonly stream: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** Frees the leases of sessions that are gone. */
  readonly reap: () => Promise<void>;
}

export class SessionWatch {
  readonly #js: JetStream;
  readonly #wire: Wire;
  readonly #subjects: QueueSubjects;
  readonly #stream: string;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #reap: () => Promise<void>;
  readonly #isOwn: (id: string) => boolean;
  readonly #watched = new Map<string, Watched>();
  #subscription: Subscription | undefined;
  #timer: Timer | undefined;
  #isLooking = false;
  #lastLook: Timer | undefined;
  /** By the monotonic clock. */
  #lastLookAt = 0;
  #restUntil = 0;
  #closed = false;

  constructor(parts: SessionWatchParts, isOwn: (id: string) => boolean) {
    this.#js = parts.js;
    this.#wire = parts.wire;
    this.#subjects = parts.subjects;
    this.#stream = parts.stream;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#reap = parts.reap;
    this.#isOwn = isOwn;
    this.#wire.watch((up) => {
      // Whatever was said while this process was away was not heard here.
      if (up) this.#watchAnew();
    });
  }

  /** Frees what those that are gone have left, and watches from then on. */
  async begin(): Promise<void> {
    if (this.#subscription !== undefined || this.#closed) return;
    this.#subscription = this.#wire.subscribe(this.#subjects.allSessions, (delivery) => this.#hear(delivery));
    await this.#reapSurely();
    await this.#meetAll();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#lastLook?.cancel();
    this.#subscription?.unsubscribe();
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

  #hear({ subject, data }: Delivery): void {
    const id = lastToken(subject);
    if (this.#isOwn(id)) return;
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
      if (this.#isOwn(id) || this.#watched.has(id)) continue;
      for (const line of readable([data], readLine)) this.#meet(id, line);
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
