/** One queue, as this process sees it: its desk, those who wait for it, and when they look by themselves. */
import { QueueMissing } from "../../domain/errors.ts";
import type { Timer } from "../../domain/clock.ts";
import type * as port from "../../engine/port.ts";
import { HeldLeases } from "../../engine/held-leases.ts";
import type { Moment } from "./call.ts";
import { Desk, type DeskParts } from "./desk.ts";
import { queueNames } from "./names.ts";
import { type Answer, list, type News, number } from "./replies.ts";
import { readSubmitted } from "./submitted.ts";
import { pairs, type SignalListener } from "./signals.ts";
import { Waiting } from "./waiting.ts";
import { claims, HOLDS, OUTCOMES } from "./waits.ts";

/** A signal can be lost, and whoever sleeps is known to the server for 15 s only: this often they look, and say that they still wait. */
const LOOK_MS = 4_000;
/** This often while something else carries the signals, and is away. */
const DEAF_LOOK_MS = 1_000;
/** Whoever is busy for so long has not left. */
const IDLE_MS = 1_000;
/** Submissions are put into words where they are sent, with others. */
const NO_ARGUMENTS: readonly string[] = [];
/** After the subscription failed. */
const LISTEN_AGAIN_MS = 1_000;

export interface QueueParts extends Pick<DeskParts, "name" | "levels" | "nonce" | "wire" | "clock" | "signals"> {
  readonly prefix: string;
  /** It was deleted, by this handle or another. */
  readonly onMissing: (queue: Queue) => void;
}

type AnyWaiting = { readonly size: number; look(): void; fail(error: Error): void; close(): void };

export class Queue implements SignalListener {
  readonly levels: readonly string[];
  readonly name: string;
  readonly #parts: QueueParts;
  readonly #channel: string;
  readonly desk: Desk;
  readonly #claims: Waiting<port.ClaimRequest, readonly port.Grant[]>;
  readonly #holds = new Waiting(HOLDS, () => this.desk);
  readonly #outcomes = new Waiting(OUTCOMES, () => this.desk);
  readonly #held = new HeldLeases();
  #listening: Promise<() => void> | undefined;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  #leaving: Timer | undefined;
  #isClosed = false;

  constructor(parts: QueueParts) {
    const { levels } = parts;
    const { keys, channel } = queueNames(parts.prefix, parts.name, levels.length);
    this.#parts = parts;
    this.#channel = channel;
    this.levels = levels;
    this.name = parts.name;
    this.#claims = new Waiting(claims(levels), () => this.desk);
    this.desk = new Desk({
      ...parts,
      keys,
      companions: this.#claims,
      onAnswer: (answer) => this.#answered(answer),
      onMissing: (error) => this.#missing(error),
    });
  }

  look<T>(what: string, args: readonly string[], read: (result: unknown) => T): Promise<T> {
    return this.desk.ask(`a look at ${what}`, args, read, { looks: true });
  }

  /** Undefined: it is deleted. Otherwise what it has in it: items that wait, leases and dead letters. */
  async delete(force: boolean): Promise<readonly number[] | undefined> {
    const args = ["deleteQueue", force ? "1" : "0"];
    const found = await this.desk.ask("the deletion of a queue", args, (result) => result, { alone: true });
    if (found !== 1) return list(found).map(number);
    this.#missing(new QueueMissing(this.name));
    return undefined;
  }

  submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const read = (result: unknown, { at }: Moment): readonly port.SubmitResult[] => {
      const answers = list(result);
      return submissions.map((one, index) => readSubmitted(one, answers[index], at, this.levels));
    };
    return this.desk.ask("a submission", NO_ARGUMENTS, read, { entries: submissions.length, grows: true, submissions });
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    this.#listen().catch(() => undefined);
    try {
      const grants = await this.#claims.wait(request);
      for (const { lease } of grants) this.#held.add(lease, request.lost);
      return grants;
    } finally {
      this.#leaveSoon();
    }
  }

  async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    // Whoever only tries does not wait to be told.
    if (!request.signal.aborted) this.#listen().catch(() => undefined);
    const lease = await this.#holds.wait(request);
    if (lease !== undefined) this.#held.add(lease, request.lost);
    return lease;
  }

  async outcome(request: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    if (request.signal.aborted) return undefined;
    this.#listen().catch(() => undefined);
    try {
      return await this.#outcomes.wait(request);
    } finally {
      this.#leaveSoon();
    }
  }

  /** The lease has ended, as far as this process is concerned. */
  forget(lease: port.Lease): void {
    this.#held.remove(lease);
  }

  idle(): number {
    return this.#claims.size;
  }

  /** There is work: the tidings may have overtaken the answer to a claim that came too early for it. */
  work(): void {
    this.#claims.look();
  }

  due(inUs: number): void {
    this.#wakeIn(inUs);
  }

  hear({ left = 0, freed = [], ended = [], lost = [] }: Partial<News>): void {
    const [keys, ids] = [new Set(freed), new Set(ended)];
    if (keys.size > 0) this.#holds.look(({ key }) => keys.has(key));
    if (ids.size > 0) this.#outcomes.look(({ id }) => ids.has(id));
    for (const { key, fence } of pairs(lost)) this.#held.lose({ queue: this.name, key, fence });
    // Claims that were with the server in another call have missed it.
    if (left > 0) this.work();
  }

  doubted(key: string, fence: number): void {
    this.#held.doubt({ queue: this.name, key, fence });
  }

  /** Everybody who waits looks. */
  missed(): void {
    for (const waiting of this.#waiting) waiting.look();
  }

  /** Whoever hears nothing any more looks at once, and more often. */
  hearingChanged(): void {
    if (this.#parts.signals.hears || !this.#anyWaits || this.#isClosed) return;
    this.missed();
    this.#wakeIn(this.#lookMs * 1_000);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#leaving?.cancel();
    this.#timer?.cancel();
    for (const waiting of this.#waiting) waiting.close();
    await this.desk.quiet();
    // A subscription that is just being made may wait for a server that is away, and ends with its connection.
    this.#listening?.then((stop) => stop()).catch(() => undefined);
  }

  #missing(error: QueueMissing): void {
    for (const waiting of this.#waiting) waiting.fail(error);
    this.#parts.onMissing(this);
  }

  #answered({ dueInUs, news }: Answer): void {
    const { signals, name } = this.#parts;
    signals.tell?.(name, news);
    this.hear(signals.published ? { left: news.left } : news);
    this.#wakeIn(dueInUs);
  }

  /** Listens from the first time that somebody may wait. What happened before that is looked for. */
  #listen(): Promise<unknown> {
    if (this.#listening !== undefined || this.#isClosed) return Promise.resolve();
    const { signals, name, clock } = this.#parts;
    this.#listening = signals.listen(name, this.#channel, this);
    return this.#listening.then(
      () => this.missed(),
      () => {
        // The looks by oneself remain.
        clock.setTimer(LISTEN_AGAIN_MS, () => {
          this.#listening = undefined;
          this.#listen().catch(() => undefined);
        });
      },
    );
  }

  /** Channels of Redis itself are listened to for good; of another carrier's no more than is needed. */
  #leaveSoon(): void {
    if (this.#parts.signals.published || this.#leaving !== undefined || this.#isClosed || this.#anyWaits) return;
    this.#leaving = this.#parts.clock.setTimer(IDLE_MS, () => {
      this.#leaving = undefined;
      if (this.#anyWaits || this.#isClosed) return;
      // Those who hold leases still want to hear that one is lost.
      if (this.#held.size > 0) return this.#leaveSoon();
      this.#listening?.then((stop) => stop()).catch(() => undefined);
      this.#listening = undefined;
    });
  }

  get #lookMs(): number {
    return this.#parts.signals.hears ? LOOK_MS : DEAF_LOOK_MS;
  }

  get #waiting(): readonly AnyWaiting[] {
    return [this.#claims, this.#holds, this.#outcomes];
  }

  get #anyWaits(): boolean {
    return this.#waiting.some(({ size }) => size > 0);
  }

  /** One timer: for what comes due, and for the looks by oneself. */
  #wakeIn(inUs: number): void {
    if (this.#isClosed || !this.#anyWaits) return;
    const { clock } = this.#parts;
    const lookMs = this.#lookMs;
    const inMs = Math.min(Math.max(0, Math.ceil(inUs / 1_000)), lookMs);
    const at = clock.monotonic() + inMs;
    if (at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    const isLook = inMs === lookMs;
    this.#timer = clock.setTimer(inMs, () => {
      this.#timerAt = Infinity;
      if (!this.#anyWaits) return;
      // Whatever is due happens when the server is asked for anything.
      if (isLook) this.missed();
      else if (this.#claims.size > 0) this.desk.look();
      else this.#holds.look();
      this.#wakeIn(this.#lookMs * 1_000);
    });
  }
}
