import { type Clock, pause, systemClock } from "../../domain/clock.ts";
import { BatonError, Closed, InvalidInput, OutcomeUnknown } from "../../domain/errors.ts";
import type * as port from "../../engine/port.ts";
import { locksOnRegister } from "../../locks/locks-on-register.ts";
import type { Locks } from "../../locks/port.ts";
import type { Register } from "../../locks/register.ts";
import { LONG_RUN } from "./ahead.ts";
import { check, durability } from "./check.ts";
import type { ConsumerInfo } from "./api-types.ts";
import { JetStream } from "./jetstream.ts";
import { Keeper } from "./keeper.ts";
import { Nonces } from "./nonce.ts";
import { cancel, isGone, keyOfItem, pauseKey, revive } from "./operate.ts";
import { type StoreOptions, type StoreSettings, parseStoreOptions } from "./options.ts";
import { QueueRoom } from "./queue-room.ts";
import { NatsRegister } from "./register.ts";
import { Lost, Requests } from "./requests.ts";
import { declareQueue, pauseQueue, type QueueRecord, readQueue } from "./setup.ts";
import { lastToken, Subjects } from "./subjects.ts";
import type { Wire } from "./wire.ts";

/** A message about a change may come a moment before the change can be read. */
const RECHECK_MS = 50;
/** Messages can be lost; what they would have told is found at the latest after this. */
const SAFETY_MS = 5_000;

const CLOSE_MS = 3_000;
/** An item that is nowhere is looked for again after this. */
const GONE_MS = 500;

export interface EngineParts {
  readonly wire: Wire;
  readonly options?: StoreOptions;
  readonly clock?: Clock;
  /** Of this process alone: letters and digits. */
  readonly name?: string;
  readonly random: () => number;
  /** After so many keys in a row, each at once, a worker's leases are brief. */
  readonly briefAfter?: number;
  /** Writes go in batches from the first on, whether the server is slow or not. */
  readonly putTogether?: boolean;
}

export class NatsEngine implements port.Engine {
  readonly name = "nats";
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #settings: StoreSettings;
  readonly #subjects: Subjects;
  readonly #requests: Requests;
  readonly #js: JetStream;
  readonly #nonces: Nonces;
  readonly #random: () => number;
  readonly #briefAfter: number;
  readonly #putTogether: boolean;
  readonly #rooms = new Map<string, QueueRoom>();
  readonly #declaring = new Map<string, Promise<QueueRoom>>();
  readonly #closing = new AbortController();
  /** What locks are kept in. */
  readonly register: Register;
  readonly #locks: Locks;
  readonly #keeper: Keeper;

  constructor({
    wire,
    options,
    clock = systemClock,
    name = randomName(),
    random,
    briefAfter = LONG_RUN,
    putTogether = false,
  }: EngineParts) {
    this.#briefAfter = briefAfter;
    this.#putTogether = putTogether;
    this.#wire = wire;
    this.#clock = clock;
    this.#settings = parseStoreOptions(options);
    this.#subjects = new Subjects(this.#settings.prefix);
    this.#nonces = new Nonces(name);
    this.#random = random;
    this.#requests = new Requests(wire, clock, this.#inbox);
    this.#js = new JetStream(
      this.#requests,
      this.#settings.api,
      (ms) => pause(clock, ms),
      () => wire.server,
    );
    this.#keeper = new Keeper({
      js: this.#js,
      wire,
      clock,
      subjects: this.#subjects,
      settings: this.#settings,
      rooms: this.#rooms,
    });
    this.register = new NatsRegister({
      js: this.#js,
      wire,
      clock,
      nonces: this.#nonces,
      subjects: this.#subjects,
      run: (what, work) =>
        this.#run(what, async () => {
          await this.#keeper.setUpShared();
          return await work();
        }),
    });
    const newId = (): string => this.#nonces.next();
    this.#locks = locksOnRegister({ name: "nats", register: this.register, clock, random, newId });
  }

  async declare({ queue, levels }: port.DeclareRequest): Promise<port.QueueDeclaration> {
    const room = await this.#run("the declaration of a queue", () => this.#declare(queue, levels));
    return { levels: room.levels };
  }

  submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const [first] = submissions;
    const room = first === undefined ? undefined : this.#rooms.get(first.queue);
    if (first !== undefined && room !== undefined && submissions.length === 1 && !this.#closing.signal.aborted)
      return room.submitter.submitOne(first, (work) => this.#explained("a submission", work));
    return this.#run("a submission", () =>
      room !== undefined && submissions.every(({ queue }) => queue === first?.queue)
        ? room.submitter.submit(submissions)
        : this.#submitApart(submissions),
    );
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    this.#checkOpen();
    return await this.#room(request.queue).claim(request);
  }

  async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    return await this.#run("a hold", () => this.#room(request.queue).hold(request, this.#closing.signal));
  }

  async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return await this.#run("a renewal", () =>
      Promise.all(renewals.map((renewal) => this.#room(renewal.lease.queue).leases.renew(renewal))),
    );
  }

  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return await this.#run("a settlement", () =>
      Promise.all(settlements.map((settlement) => this.#room(settlement.lease.queue).settle(settlement))),
    );
  }

  async find({ queue, id }: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return await this.#look(() => this.#room(queue).inspector.find(id));
  }

  async outcome({ queue, id, signal }: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    this.#checkOpen();
    const room = this.#room(queue);
    const over = AbortSignal.any([signal, this.#closing.signal]);
    const look = async (): Promise<port.Outcome | undefined> => {
      const key = await keyOfItem(room.store, id);
      const stir = new Stir(this.#clock);
      const subjects = [room.subjects.receipt(id), ...(key === undefined ? [] : [room.subjects.state(key)])];
      const hearing = subjects.map((subject) => this.#wire.subscribe(subject, () => stir.now()));
      const giveUp = (): void => stir.now();
      over.addEventListener("abort", giveUp);
      try {
        for (let missed = false; ;) {
          const report = await room.inspector.find(id);
          if (report === undefined) {
            if (!(await isGone(room.store, id))) return undefined;
            if (missed) throw gone(queue, id);
            missed = true;
            // One that was delayed may just be on its way to its key.
            await pause(this.#clock, GONE_MS);
            continue;
          }
          missed = false;
          if (report.outcome !== undefined || over.aborted) return report.outcome;
          await stir.wait(RECHECK_MS, SAFETY_MS, over);
        }
      } finally {
        over.removeEventListener("abort", giveUp);
        for (const subscription of hearing) subscription.unsubscribe();
      }
    };
    try {
      return await this.#look(look);
    } catch (error) {
      if (over.aborted) return undefined;
      throw error;
    }
  }

  async cancel({ queue, id }: port.ItemRequest): Promise<port.CancelResult> {
    return await this.#run("a cancellation", () => cancel(this.#room(queue).store, id));
  }

  async pause({ queue, key, paused }: port.PauseRequest): Promise<void> {
    await this.#run("a pause", async () => {
      const room = this.#room(queue);
      if (key !== undefined) {
        if (paused) room.giveBack();
        await pauseKey(room.store, key, paused);
        return;
      }
      const restore = (): Promise<boolean> => this.#keeper.restoreConsumers(queue);
      await this.#js.again(() => pauseQueue(this.#js, this.#subjects, queue, paused, restore));
      room.knowPaused(paused);
    });
  }

  async queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return await this.#look(async () => {
      await this.#keeper.setUpShared();
      const subjects = await this.#js.subjects(this.#subjects.shared, this.#subjects.allQueueRecords);
      const names = [...subjects.keys()]
        .map(lastToken)
        .filter((name) => request.queue === undefined || name === request.queue);
      return await Promise.all(
        names.map(async (name) => await (this.#rooms.get(name) ?? (await this.#visit(name))).report()),
      );
    });
  }

  async keys(request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    return await this.#look(async () => {
      const room = this.#room(request.queue);
      await room.quiet();
      return await room.inspector.keys(request);
    });
  }

  async dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return await this.#look(() => this.#room(request.queue).inspector.dead(request));
  }

  async revive(request: port.ReviveRequest): Promise<number> {
    return await this.#run("a revival", () => {
      const room = this.#room(request.queue);
      return revive(room.store, room.submitter, request);
    });
  }

  locks(): Locks {
    return this.#locks;
  }

  async check(): Promise<readonly port.Finding[]> {
    return await this.#run("a check", () => check(this.#js, this.#wire, this.#subjects, this.#settings, this.#clock));
  }

  get caution(): port.Finding | undefined {
    const { config } = this.#keeper;
    const finding = config === undefined ? undefined : durability(config);
    return finding?.severity === "ok" ? undefined : finding;
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    // A server that is away must not keep a process from ending.
    const late = pause(this.#clock, CLOSE_MS);
    // Those who wait for locks leave their places, for which the store is still needed.
    await Promise.race([this.#locks.close(), late]);
    this.#closing.abort();
    const closing = Promise.allSettled(Array.from(this.#rooms.values(), (room) => room.close()));
    await Promise.race([closing, late]);
    this.#requests.close();
    await this.#wire.close();
  }

  get #inbox(): string {
    return `${this.#settings.inbox}.${this.#nonces.own}`;
  }

  async #declare(queue: string, levels: readonly string[] | undefined): Promise<QueueRoom> {
    await this.#keeper.setUpShared();
    const record = await declareQueue(this.#js, this.#subjects, queue, levels);
    const known = this.#rooms.get(queue);
    if (known !== undefined) return known;
    let declaring = this.#declaring.get(queue);
    if (declaring === undefined) {
      declaring = this.#js
        .again(() => this.#keeper.setUpQueue(queue, record, record.isNew))
        .then((consumers) => {
          const room = this.#openRoom(queue, record, consumers);
          this.#rooms.set(queue, room);
          return room;
        })
        .finally(() => this.#declaring.delete(queue));
      this.#declaring.set(queue, declaring);
    }
    return await declaring;
  }

  /** A queue that this handle only looks at. */
  async #visit(queue: string): Promise<QueueRoom> {
    const record = await readQueue(this.#js, this.#subjects, queue);
    if (record === undefined) throw undeclared(queue);
    return await this.#declare(queue, record.levels);
  }

  #openRoom(queue: string, record: QueueRecord, consumers: readonly ConsumerInfo[]): QueueRoom {
    return new QueueRoom({
      queue,
      record,
      js: this.#js,
      wire: this.#wire,
      clock: this.#clock,
      nonces: this.#nonces,
      random: this.#random,
      briefAfter: this.#briefAfter,
      putTogether: this.#putTogether,
      subjects: this.#subjects.of(queue),
      shared: this.#subjects.shared,
      inbox: this.#inbox,
      consumers,
      readQueue: () => readQueue(this.#js, this.#subjects, queue),
      restore: () => this.#keeper.restoreConsumers(queue),
    });
  }

  /** Entries for several queues, or for some that were not declared: each is answered for itself. */
  async #submitApart(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const byQueue = Map.groupBy(submissions, ({ queue }) => queue);
    const results = new Map<port.Submission, port.SubmitResult>();
    await Promise.all(
      [...byQueue].map(async ([queue, entries]) => {
        const room = this.#rooms.get(queue);
        const answers = await room?.submitter.submit(entries);
        for (const [at, entry] of entries.entries())
          results.set(entry, answers?.[at] ?? { ok: false, error: undeclared(queue) });
      }),
    );
    return submissions.map((entry) => results.get(entry) ?? { ok: false, error: undeclared(entry.queue) });
  }

  #room(queue: string): QueueRoom {
    const room = this.#rooms.get(queue);
    if (room === undefined) throw undeclared(queue);
    return room;
  }

  /** It changes nothing, so nothing can have happened that is not known. */
  async #look<T>(work: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    try {
      return await work();
    } catch (error) {
      throw explained("a look", error);
    }
  }

  async #run<T>(what: string, work: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    return await this.#explained(what, work);
  }

  /** What is under way already comes to its end while this is being closed. */
  async #explained<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof Lost ? new OutcomeUnknown(what, { cause: error }) : explained(what, error);
    }
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new Closed();
  }
}

/** Wakes whoever waits, once more a moment later, and now and then in any case. */
class Stir {
  readonly #clock: Clock;
  #stirred = false;
  #again = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): void {
    this.#stirred = true;
    this.#again = true;
    this.#wake?.();
  }

  async wait(againMs: number, safetyMs: number, over: AbortSignal): Promise<void> {
    if (over.aborted) return;
    if (!this.#stirred) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.setTimer(this.#again ? againMs : safetyMs, resolve);
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
      if (!this.#stirred) this.#again = false;
    }
    this.#wake = undefined;
    this.#stirred = false;
  }
}

function gone(queue: string, id: string): BatonError {
  return new BatonError(
    "STORE_CORRUPT",
    `Item ${id} is gone: somebody deleted the stream of queue ${queue} after it was accepted. Nobody will run it. ` +
      "Submit it again under another id.",
  );
}

function undeclared(queue: string): InvalidInput {
  return new InvalidInput("queue", queue, "the name of a queue that was declared");
}

/** About 70 bits: letters and digits, which are safe in every subject. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => (byte % 36).toString(36)).join("");
}

function explained(what: string, cause: unknown): BatonError {
  if (cause instanceof BatonError) return cause;
  return new BatonError("STORE_UNAVAILABLE", `The NATS server could not do ${what}: ${String(cause)}`, { cause });
}
