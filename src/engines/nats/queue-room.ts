/** One queue, as one handle works with it: all parts put together. */
import type { Clock, Timer } from "../../domain/clock.ts";
import { QueueMissing } from "../../domain/errors.ts";
import type * as port from "../../engine/port.ts";
import { mendAnnouncements } from "./announcements.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { Claims, type Due } from "./claims.ts";
import { Counts } from "./counts.ts";
import { holdKey } from "./holds.ts";
import { Inspector } from "./inspect.ts";
import { Intake } from "./intake.ts";
import { asError } from "./as-error.ts";
import type { ConsumerInfo } from "./api-types.ts";
import type { JetStream } from "./jetstream.ts";
import { KeyStore } from "./key-store.ts";
import { Leases } from "./leases.ts";
import { Losses } from "./losses.ts";
import type { Nonces } from "./nonce.ts";
import { Pulls } from "./pulls.ts";
import { Puts } from "./puts.ts";
import { reap } from "./reap.ts";
import { Receipts } from "./receipts.ts";
import { Sessions } from "./sessions.ts";
import { type QueueRecord, readRecord } from "./setup.ts";
import type { KeyItem, Seen } from "./state.ts";
import type { QueueSubjects } from "./subjects.ts";
import { Submitter } from "./submit.ts";
import { Watches } from "./watches.ts";
import type { Subscription, Wire } from "./wire.ts";

/** Delayed items that come due are taken in so many at a time. */
const DUE_BATCH = 64;
/** Between two looks whether the queue is paused, while nobody answers. Until then items start the longer way. */
const CATCH_UP_MS = 1_000;
/** Clocks of a cluster's servers may differ by so much. */
const SKEW_MS = 1_000;
/** Left for headers and for what a state says beside its items. */
const MARGIN_BYTES = 16_384;

export interface RoomParts {
  readonly queue: string;
  readonly record: QueueRecord;
  readonly js: JetStream;
  readonly wire: Wire;
  readonly clock: Clock;
  readonly nonces: Nonces;
  readonly random: () => number;
  readonly subjects: QueueSubjects;
  readonly shared: string;
  readonly inbox: string;
  readonly consumers: readonly ConsumerInfo[];
  /** Writes that wait together are stored so, from this many on. Undefined: each apart. */
  readonly fewestTogether: number | undefined;
  readonly readQueue: () => Promise<QueueRecord | undefined>;
  /** The queue was deleted, by this handle or another. */
  readonly onMissing: () => void;
  /** Looks after what the queue has at the server. True: some of it was made anew. */
  readonly restore: () => Promise<boolean>;
}

export class QueueRoom {
  readonly levels: readonly string[];
  readonly store: KeyStore;
  readonly submitter: Submitter;
  readonly leases: Leases;
  readonly inspector: Inspector;
  readonly subjects: QueueSubjects;
  readonly #parts: RoomParts;
  readonly #sessions: Sessions;
  readonly #background = new Set<Promise<unknown>>();
  readonly #intake: Intake;
  readonly #hearing: Subscription;
  readonly #watches: Watches;
  readonly #losses: Losses;
  readonly #acknowledgements: Acknowledgements;
  /** By name: when they were made, as the server says it. */
  readonly #created = new Map<string, string>();
  /** Holds that are waited for. Whoever closes lets them take back what they have said first. */
  readonly #holding = new Set<Promise<unknown>>();
  #claims: Claims | undefined;
  #due: Due | undefined;
  readonly #pulls: Pulls[] = [];
  #paused: boolean;
  /** How often it was told so. */
  #hears = 0;
  /** Nothing was said that was not heard. */
  #hearsAll = false;
  #catchingUp: Timer | undefined;
  #closed = false;
  readonly #gone = new AbortController();

  constructor(parts: RoomParts) {
    const { js, wire, clock, nonces, subjects, shared, queue, record } = parts;
    this.#parts = parts;
    this.levels = record.levels;
    this.#paused = record.paused;
    this.subjects = subjects;
    const receipts = new Receipts(js, subjects, shared, this.levels);
    const background = (work: Promise<unknown>): void => this.#inBackground(work);
    const room = wire.server.maxPayload - MARGIN_BYTES;
    const puts = new Puts(js, subjects.stream, nonces, parts.fewestTogether);
    this.store = new KeyStore({
      js,
      puts,
      subjects,
      levels: this.levels.length,
      clock,
      receipts,
      nonces,
      room,
      background,
      takeInDue: () => this.#takeInDue(),
    });
    const counts = new Counts(this.store, shared, () => this.inspector.total());
    this.inspector = new Inspector(this.store, queue, this.levels, shared, () => counts);
    // What has come due goes first.
    const startHere = (key: string, item: KeyItem): Promise<Seen | undefined> | undefined =>
      this.#paused || !this.#hearsAll || !this.#intake.isEmpty ? undefined : this.#claims?.startHere(key, item);
    this.submitter = new Submitter(this.store, counts, queue, this.levels, startHere);
    this.#intake = new Intake({
      store: this.store,
      submitter: this.submitter,
      wire,
      stream: shared,
      mayBeSecond: (at) => this.#mayBeSecond(at),
      ended: () => this.#claims?.stir(),
    });
    this.#sessions = new Sessions({
      js,
      wire,
      subjects,
      stream: shared,
      clock,
      nonces,
      random: parts.random,
      reap: () => reap(this.store, this.leases, this.#sessions),
    });
    this.#acknowledgements = new Acknowledgements(js, wire, subjects.stream, clock);
    this.leases = new Leases(this.store, this.#sessions, this.#acknowledgements, {
      queue,
      levelName: (level) => this.levels[level] ?? "",
      emptied: () => this.#claims?.withdraw(),
      lost: (key, written) => this.#losses.tell(key, written),
      freed: (token) => {
        if (!this.#paused) this.#claims?.offer(token);
      },
    });
    this.know(parts.consumers);
    const lookAnew = (): void => this.#claims?.lookAnew();
    this.#losses = new Losses(wire, queue, subjects.lost, lookAnew);
    this.#watches = new Watches(wire, clock);
    // The server's own copy of what is written: nobody has to be told in addition.
    this.#hearing = wire.subscribe(subjects.queueRecord(), ({ data }) => this.#hear(readRecord(data)));
    wire.watch((up) => {
      this.#hearsAll = false;
      if (up) this.#catchUp();
    });
    this.#catchUp();
  }

  /** Fires when the queue is deleted. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  missing(): void {
    if (this.#gone.signal.aborted) return;
    const error = new QueueMissing(this.#parts.queue);
    this.#gone.abort(error);
    this.#parts.onMissing();
    this.#claims?.refuse(error);
    this.#losses.doubtAll();
  }

  /** These are the queue's consumers. True: not all of them are those that were known. */
  know(consumers: readonly ConsumerInfo[]): boolean {
    const anew = consumers.filter(({ config, created }) => this.#created.get(config.durable_name) !== created);
    for (const { config, created } of anew) {
      if (this.#created.has(config.durable_name)) this.#acknowledgements.anew(config.durable_name);
      this.#created.set(config.durable_name, created);
    }
    // With its stream a consumer may go without a word to all of its pulls: of those of the old ones, none stands any more.
    if (anew.length > 0) this.#claims?.lookAnew();
    return anew.length > 0;
  }

  /** A consumer of a stream has a new leader. */
  elected(stream: string, consumer: string): void {
    if (stream !== this.subjects.stream && stream !== this.#parts.shared) return;
    for (const pulls of this.#pulls) pulls.askAnew(consumer);
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    if (request.signal.aborted) return [];
    const claims = this.#claims ?? this.#beginClaims();
    const grants = await claims.claim(request);
    for (const { lease } of grants) this.#losses.add(lease, request.lost);
    return grants;
  }

  async hold(request: port.HoldRequest, closing: AbortSignal): Promise<port.Lease | undefined> {
    const { clock } = this.#parts;
    const parts = { leases: this.leases, store: this.store, watches: this.#watches, clock, closing, gone: this.gone };
    const holding = holdKey(parts, request).finally(() => this.#holding.delete(holding));
    this.#holding.add(holding);
    const lease = await unlessGone(holding, this.gone);
    if (lease !== undefined) this.#losses.add(lease, request.lost);
    return lease;
  }

  /** Whether the key may go on with its next run, as its holder wishes. */
  mayGoOn({ lease, ending, next }: port.Settlement): boolean {
    if (next === undefined || ending.type === "retry" || ending.type === "release") return false;
    return !this.#paused && this.leases.mayGoOn(lease);
  }

  /** @param next the key's next run, if it may go on */
  async settle(settlement: port.Settlement, next?: port.NextRequest): Promise<port.SettleResult> {
    this.#losses.remove(settlement.lease);
    const ended = await this.leases.settle(settlement, next);
    if (ended.next === undefined) return ended.result;
    const grant = this.leases.grant(ended.next);
    this.#losses.add(grant.lease, next?.lost);
    return grant;
  }

  async report(): Promise<port.QueueReport> {
    await this.quiet();
    return await this.inspector.report(this.#paused);
  }

  /** What this handle began is done, so that what it reports includes it. */
  async quiet(): Promise<void> {
    await this.leases.quiet();
    await Promise.allSettled(this.#background);
  }

  knowPaused(paused: boolean): void {
    this.#hear({ levels: this.levels, paused });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#catchingUp?.cancel();
    await Promise.allSettled(this.#holding);
    this.#hearing.unsubscribe();
    this.#losses.close();
    this.#watches.close();
    await this.#claims?.close();
    for (const pulls of this.#pulls) pulls.close();
    this.leases.close();
    await this.quiet();
    await this.#sessions.close(this.leases.count === 0);
  }

  #beginClaims(): Claims {
    const { js, wire, clock, subjects, inbox } = this.#parts;
    const consumers = this.levels.map((_, level) => js.nextMessages(subjects.stream, subjects.readyConsumer(level)));
    const pulls = new Pulls({
      wire,
      clock,
      inbox: `${inbox}.${this.#parts.nonces.next()}`,
      subjects: consumers,
      arrive: (level, pulled) => claims.arrive(level, pulled),
      ended: () => claims.stir(),
      refused: () => this.#restore(),
    });
    this.#losses.listen();
    const { store, leases } = this;
    const claims: Claims = new Claims({ store, leases, pulls, wire, due: this.#dueOfQueue() });
    this.#claims = claims;
    this.#pulls.push(pulls);
    wire.watch((up) => {
      if (up) claims.lookAnew();
    });
    this.#inBackground(this.#sessions.watch());
    mendAnnouncements(this.store, () => this.#closed).catch(() => undefined);
    return claims;
  }

  /** What has come due is at its keys, as far as it was not delivered to somebody else. */
  async #takeInDue(): Promise<void> {
    await this.#dueOfQueue().takeIn();
    await this.#intake.all();
  }

  #dueOfQueue(): Due {
    this.#due ??= this.#beginIntake();
    return this.#due;
  }

  /** What comes due takes its place among what waits, at once. While nobody works here it may wait where it is: whoever claims next takes it in first. */
  #beginIntake(): Due {
    const { js, wire, clock, subjects, shared, inbox } = this.#parts;
    const isWanted = (): boolean => this.#claims?.isWanted === true || this.leases.count > 0;
    const stand = (): void => {
      if (isWanted()) pulls.stand(0, DUE_BATCH);
    };
    const pulls: Pulls = new Pulls({
      wire,
      clock,
      inbox: `${inbox}.${this.#parts.nonces.next()}`,
      subjects: [js.nextMessages(shared, subjects.dueConsumer)],
      arrive: (_, pulled) => {
        this.#inBackground(this.#intake.take(pulled));
        stand();
      },
      ended: stand,
      refused: () => this.#restore(),
    });
    this.#pulls.push(pulls);
    wire.watch((up) => {
      if (up) stand();
    });
    return {
      takeIn: () => {
        if (pulls.isStanding(0)) return this.#intake.isEmpty ? undefined : this.#intake.all();
        return pulls.quick(0, DUE_BATCH).then(({ found }) => {
          if (found < DUE_BATCH) stand();
        });
      },
      withdraw: () => {
        if (!isWanted()) pulls.withdraw();
      },
    };
  }

  async #restore(): Promise<boolean> {
    try {
      return await this.#parts.restore();
    } catch (error) {
      this.#claims?.refuse(asError(error));
      throw error;
    }
  }

  /** Whether a consumer that is no more may have delivered it before. */
  #mayBeSecond(at: number): boolean {
    return at <= Date.parse(this.#created.get(this.subjects.dueConsumer) ?? "") + SKEW_MS;
  }

  /** What was said before this process listened, or while it was cut off. What is said meanwhile is newer. */
  #catchUp(): void {
    const heard = this.#hears;
    const again = (): void => {
      this.#catchingUp?.cancel();
      if (!this.#closed) this.#catchingUp = this.#parts.clock.setTimer(CATCH_UP_MS, () => this.#catchUp());
    };
    this.#parts.readQueue().then((record) => {
      if (record === undefined && this.#hears === heard) return void this.#parts.restore().catch(() => undefined);
      if (record !== undefined && this.#hears === heard && record.paused !== this.#paused) this.#hear(record);
      this.#hearsAll = true;
    }, again);
  }

  #hear({ paused, deletion }: QueueRecord): void {
    if (deletion?.step === "deleted") return this.missing();
    this.#hears += 1;
    this.#paused = paused;
    // A pull that stood while its consumer was paused is not woken by the server.
    if (paused) this.#claims?.pause();
    else this.#claims?.lookAnew();
  }

  #inBackground(work: Promise<unknown>): void {
    const done: Promise<unknown> = work
      .catch(() => undefined)
      .finally(() => {
        this.#background.delete(done);
      });
    this.#background.add(done);
  }
}

/** Rejects when the signal fires: what a call would still take back is gone with the queue. */
async function unlessGone<T>(work: Promise<T>, gone: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(asError(gone.reason));
  gone.addEventListener("abort", end, { once: true });
  work.catch(() => undefined);
  try {
    gone.throwIfAborted();
    return await Promise.race([work, ended]);
  } finally {
    gone.removeEventListener("abort", end);
  }
}
