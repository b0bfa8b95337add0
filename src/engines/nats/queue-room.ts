/** One queue, as one handle works with it: all parts put together. */
import type { Clock, Timer } from "../../domain/clock.ts";
import type * as port from "../../engine/port.ts";
import { mendAnnouncements } from "./announcements.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { Claims } from "./claims.ts";
import { decodeItem } from "./codec.ts";
import { Counts } from "./counts.ts";
import { holdKey } from "./holds.ts";
import { Inspector } from "./inspect.ts";
import { asError } from "./as-error.ts";
import type { ConsumerInfo } from "./api-types.ts";
import type { JetStream } from "./jetstream.ts";
import { KeyStore } from "./key-store.ts";
import { Leases } from "./leases.ts";
import { firstFence, Losses } from "./losses.ts";
import type { Nonces } from "./nonce.ts";
import { lookAgain } from "./operate.ts";
import { type Pulled, Pulls } from "./pulls.ts";
import { Puts } from "./puts.ts";
import { reap } from "./reap.ts";
import { Receipts } from "./receipts.ts";
import { Sessions } from "./sessions.ts";
import { type QueueRecord, readRecord } from "./setup.ts";
import type { KeyItem, Seen } from "./state.ts";
import { lastToken, type QueueSubjects } from "./subjects.ts";
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
  readonly briefAfter: number;
  readonly putTogether: boolean;
  readonly readQueue: () => Promise<QueueRecord | undefined>;
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
  /** Items that have come due and are on their way to their keys. */
  readonly #intake = new Set<Promise<unknown>>();
  readonly #hearing: Subscription;
  readonly #watches: Watches;
  readonly #losses: Losses;
  readonly #acknowledgements: Acknowledgements;
  /** By name: when they were made, as the server says it. */
  readonly #created = new Map<string, string>();
  /** Holds that are waited for. Whoever closes lets them take back what they have said first. */
  readonly #holding = new Set<Promise<unknown>>();
  #claims: Claims | undefined;
  #pulls: Pulls | undefined;
  #paused: boolean;
  /** How often it was told so. */
  #hears = 0;
  /** Nothing was said that was not heard. */
  #hearsAll = false;
  #catchingUp: Timer | undefined;
  #closed = false;

  constructor(parts: RoomParts) {
    const { js, wire, clock, nonces, subjects, shared, queue, record } = parts;
    this.#parts = parts;
    this.levels = record.levels;
    this.#paused = record.paused;
    this.subjects = subjects;
    const receipts = new Receipts(js, subjects, shared, this.levels);
    const background = (work: Promise<unknown>): void => this.#inBackground(work);
    const room = wire.server.maxPayload - MARGIN_BYTES;
    const puts = new Puts(js, subjects.stream, clock, nonces, parts.putTogether);
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
    });
    const counts = new Counts(this.store, shared, () => this.inspector.total());
    this.inspector = new Inspector(this.store, queue, this.levels, shared, () => counts);
    // What has come due goes first.
    const startHere = (key: string, item: KeyItem): Promise<Seen | undefined> | undefined =>
      this.#paused || !this.#hearsAll || this.#intake.size > 0 ? undefined : this.#claims?.startHere(key, item);
    this.submitter = new Submitter(this.store, counts, queue, this.levels, startHere);
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
      goesOn: (level, hasSlot) => !this.#paused && this.#claims?.goesOn(level, hasSlot) === true,
      mayRunAhead: () => this.#claims?.mayRunAhead === true,
      reserve: (held) => this.#claims?.reserve(held),
      stir: () => this.#claims?.stir(),
      lost: (key, written) => this.#losses.tell(key, written),
      freed: (token) => {
        if (!this.#paused) this.#claims?.offer(token);
      },
    });
    this.know(parts.consumers);
    const lookAnew = (): void => this.#claims?.lookAnew();
    this.#losses = new Losses(wire, queue, subjects.lost, () => firstFence(js, subjects), lookAnew);
    this.#watches = new Watches(wire, clock);
    // The server's own copy of what is written: nobody has to be told in addition.
    this.#hearing = wire.subscribe(subjects.queueRecord(), ({ data }) => this.#hear(readRecord(data)));
    wire.watch((up) => {
      this.#hearsAll = false;
      if (up) this.#catchUp();
    });
    this.#catchUp();
  }

  get record(): QueueRecord {
    return { levels: this.levels, paused: this.#paused };
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

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    if (request.signal.aborted) return [];
    const claims = this.#claims ?? this.#beginClaims();
    const grants = await claims.claim(request);
    for (const { lease } of grants) this.#losses.add(lease, request.lost);
    return grants;
  }

  async hold(request: port.HoldRequest, closing: AbortSignal): Promise<port.Lease | undefined> {
    const { clock } = this.#parts;
    const parts = { leases: this.leases, store: this.store, watches: this.#watches, clock, closing };
    const holding = holdKey(parts, request).finally(() => this.#holding.delete(holding));
    this.#holding.add(holding);
    const lease = await holding;
    if (lease !== undefined) this.#losses.add(lease, request.lost);
    return lease;
  }

  settle({ lease, ending }: port.Settlement): Promise<port.SettleResult> {
    this.#losses.remove(lease);
    return this.leases.settle(lease, ending);
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

  /** What was started for workers that have yet to ask goes back. */
  giveBack(): void {
    this.#claims?.giveBack();
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
    this.#pulls?.close();
    await this.leases.close();
    await this.quiet();
    await this.#sessions.close(this.leases.count === 0);
  }

  #beginClaims(): Claims {
    const { js, wire, clock, subjects, shared, inbox } = this.#parts;
    const due = this.levels.length;
    const consumers = this.levels.map((_, level) => js.nextMessages(subjects.stream, subjects.readyConsumer(level)));
    const pulls: Pulls = new Pulls({
      wire,
      clock,
      inbox: `${inbox}.${this.#parts.nonces.next()}`,
      subjects: [...consumers, js.nextMessages(shared, subjects.dueConsumer)],
      arrive: (consumer, pulled) => {
        if (consumer === due) this.#arriving(pulled);
        else this.#claims?.arrive(consumer, pulled);
        if (consumer === due && !pulls.isStanding(due)) pulls.stand(due, DUE_BATCH);
      },
      ended: (consumer) => {
        if (consumer === due) pulls.stand(due, DUE_BATCH);
        else this.#claims?.stir();
      },
      refused: () =>
        this.#parts.restore().catch((error: unknown) => {
          this.#claims?.refuse(asError(error));
          throw error;
        }),
    });
    const takeIn = (): Promise<unknown> | undefined => {
      if (pulls.isStanding(due)) return this.#intake.size === 0 ? undefined : Promise.allSettled(this.#intake);
      return pulls.quick(due, DUE_BATCH).then(({ found }) => {
        if (found < DUE_BATCH) pulls.stand(due, DUE_BATCH);
      });
    };
    this.#losses.listen();
    const claims = new Claims(this.store, this.leases, pulls, wire, this.#parts.briefAfter, takeIn);
    this.#claims = claims;
    this.#pulls = pulls;
    wire.watch((up) => {
      if (!up) return;
      pulls.stand(due, DUE_BATCH);
      claims.lookAnew();
    });
    this.#inBackground(this.#sessions.watch());
    mendAnnouncements(this.store, () => this.#closed).catch(() => undefined);
    return claims;
  }

  #arriving(pulled: Pulled): void {
    const work: Promise<unknown> = this.#takeIn(pulled)
      .catch(() => undefined)
      .finally(() => {
        this.#intake.delete(work);
        this.#claims?.stir();
      });
    this.#intake.add(work);
    this.#inBackground(work);
  }

  /** A delayed item has come due, or a back-off is over. */
  async #takeIn({ subject, data, reply, sequence, deliveries, at }: Pulled): Promise<void> {
    const key = lastToken(subject);
    if (data.length === 0) {
      // That it came is proof that its time has come, whatever this process's clock says.
      await lookAgain(this.store, key, at);
    } else {
      const { dueAt: _due, ...item } = decodeItem(data, sequence);
      const front = item.attempts > 0;
      const isSecond = deliveries > 1 || front || this.#mayBeSecond(at);
      const again = isSecond && (await this.#isHere(key, item.unique, item.level));
      if (!again) await this.submitter.arrive(key, { item: { ...item, place: 0, dueAt: undefined }, front });
    }
    await this.store.js.remove(this.#parts.shared, sequence);
    this.#parts.wire.publish(reply, "+ACK");
  }

  /** Whether a consumer that is no more may have delivered it before. */
  #mayBeSecond(at: number): boolean {
    return at <= Date.parse(this.#created.get(this.subjects.dueConsumer) ?? "") + SKEW_MS;
  }

  /** Whether somebody who died right after took the item in already. */
  async #isHere(key: string, unique: string, level: number): Promise<boolean> {
    const { state } = await this.store.read(key);
    if (state.items.some((item) => item.unique === unique)) return true;
    for await (const { item } of this.store.line(key, level, state.taken[level] ?? 0))
      if (item.unique === unique) return true;
    return false;
  }

  /** What was said before this process listened, or while it was cut off. What is said meanwhile is newer. */
  #catchUp(): void {
    const heard = this.#hears;
    const again = (): void => {
      this.#catchingUp?.cancel();
      if (!this.#closed) this.#catchingUp = this.#parts.clock.setTimer(CATCH_UP_MS, () => this.#catchUp());
    };
    this.#parts.readQueue().then((record) => {
      if (record !== undefined && this.#hears === heard && record.paused !== this.#paused) this.#hear(record);
      this.#hearsAll = true;
    }, again);
  }

  #hear({ paused }: QueueRecord): void {
    this.#hears += 1;
    this.#paused = paused;
    // A pull that stood while its consumer was paused is not woken by the server.
    if (paused) this.giveBack();
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
