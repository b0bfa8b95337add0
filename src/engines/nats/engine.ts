import { type Clock, pause, systemClock } from "../../domain/clock.ts";
import { BatonError, Closed, OutcomeUnknown, QueueMissing } from "../../domain/errors.ts";
import type * as port from "../../engine/port.ts";
import { locksOnRegister } from "../../locks/locks-on-register.ts";
import type { Locks } from "../../locks/port.ts";
import type { Register } from "../../locks/register.ts";
import { tracked } from "../../locks/tracked.ts";
import { check, durability } from "./check.ts";
import type { ConsumerInfo } from "./api-types.ts";
import { tellAway } from "./away.ts";
import { Damaged } from "./damage.ts";
import { JetStream } from "./jetstream.ts";
import { isNearlyOut, noRoom } from "./fence-room.ts";
import { deleteQueue } from "./delete-queue.ts";
import { type DeletionParts, waitForDeletion } from "./deletion.ts";
import { type Elected, Elections } from "./elections.ts";
import { Keeper } from "./keeper.ts";
import type { KeyStore } from "./key-store.ts";
import { Nonces } from "./nonce.ts";
import { isGone } from "./locate.ts";
import { cancel, keyOfItem, pauseKey, revive } from "./operate.ts";
import { type StoreOptions, type StoreSettings, parseStoreOptions } from "./options.ts";
import { FEWEST_TOGETHER } from "./puts.ts";
import { QueueRoom } from "./queue-room.ts";
import { NatsRegister } from "./register.ts";
import { repairsOf, scanStore } from "./repairs.ts";
import { Lost, NotServed, Requests, SwitchedOff } from "./requests.ts";
import { pauseQueue } from "./pauses.ts";
import { declareQueue, type QueueRecord, readQueue, StreamClosed } from "./setup.ts";
import { lastToken, Subjects } from "./subjects.ts";
import type { Wire } from "./wire.ts";

/** A message about a change may come a moment before the change can be read. */
const RECHECK_MS = 50;
/** Messages can be lost; what they would have told is found at the latest after this. */
const SAFETY_MS = 5_000;

const CLOSE_MS = 3_000;
/** So much longer for what is said last over a connection of the application: what was said before may have taken all the time. */
const LAST_WORD_MS = 200;
/** An item that is nowhere is looked for again after this. */
const GONE_MS = 500;

export interface EngineParts {
  readonly wire: Wire;
  readonly options?: StoreOptions;
  readonly clock?: Clock;
  /** Of this process alone: letters and digits. */
  readonly name?: string;
  readonly random: () => number;
  /** Where the servers sync every write, so many that wait go together. */
  readonly fewestTogether?: number;
}

export class NatsEngine implements port.Engine {
  readonly name = "nats";
  readonly runs = true;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #settings: StoreSettings;
  readonly #subjects: Subjects;
  readonly #requests: Requests;
  readonly #elections: Elections;
  readonly #js: JetStream;
  readonly #nonces: Nonces;
  readonly #random: () => number;
  readonly #fewestTogether: number;
  readonly #rooms = new Map<string, QueueRoom>();
  /** Rooms of queues that were deleted, while they close. */
  readonly #formers = new Set<Promise<unknown>>();
  readonly #declaring = new Map<string, Promise<QueueRoom>>();
  readonly #closing = new AbortController();
  /** Calls that a handle which closes lets come to their ends. */
  readonly #underWay = new Set<Promise<unknown>>();
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
    fewestTogether = FEWEST_TOGETHER,
  }: EngineParts) {
    this.#fewestTogether = fewestTogether;
    this.#wire = wire;
    this.#clock = clock;
    this.#settings = parseStoreOptions(options);
    this.#subjects = new Subjects(this.#settings.prefix);
    this.#nonces = new Nonces(name);
    this.#random = random;
    this.#requests = new Requests(wire, clock, this.#inbox);
    this.#elections = new Elections(wire, (elected) => this.#elected(elected));
    this.#js = new JetStream({
      requests: this.#requests,
      api: this.#settings.api,
      clock,
      server: () => wire.server,
      replicates: (stream) => this.#elections.watch(stream),
    });
    this.#keeper = new Keeper({
      js: this.#js,
      wire,
      clock,
      subjects: this.#subjects,
      settings: this.#settings,
      rooms: this.#rooms,
      deletionParts: this.#deletionParts,
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
    this.#locks = locksOnRegister({ name: "nats", register: this.register, clock, random, newId, watchesHolds: true });
  }

  async declare({ queue, levels }: port.DeclareRequest): Promise<port.QueueDeclaration> {
    // To declare it again does no harm.
    const declare = (): Promise<QueueRoom> => served(() => this.#declare(queue, levels));
    const room = await this.#run("the declaration of a queue", declare);
    return { levels: room.levels };
  }

  submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    if (isNearlyOut(this.#js.highest)) return Promise.reject(noRoom());
    const [first] = submissions;
    const room = first === undefined ? undefined : this.#rooms.get(first.queue);
    if (first !== undefined && room !== undefined && submissions.length === 1 && !this.#closing.signal.aborted)
      return room.submitter.submitOne(first, (work) => this.#explained("a submission", () => served(work)));
    const submit = (): Promise<readonly port.SubmitResult[]> =>
      room !== undefined && submissions.every(({ queue }) => queue === first?.queue)
        ? room.submitter.submit(submissions)
        : this.#submitApart(submissions);
    // Of several some may have been written.
    return this.#run("a submission", () => (submissions.length === 1 ? served(submit) : submit()));
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
      Promise.all(
        renewals.map(async (renewal): Promise<port.RenewResult> => {
          const room = this.#rooms.get(renewal.lease.queue);
          return room === undefined ? { ok: false } : await lostWith(room.leases.renew(renewal), { ok: false });
        }),
      ),
    );
  }

  /** Those whose keys may go on come last: what the others make ready may be more urgent. */
  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const goesOn = settlements.map((one) => this.#rooms.get(one.lease.queue)?.mayGoOn(one) === true);
    const settle = async (one: port.Settlement, next?: port.NextRequest): Promise<port.SettleResult> => {
      const room = this.#rooms.get(one.lease.queue);
      return room === undefined ? "lost" : await lostWith(room.settle(one, next), "lost");
    };
    return await this.#run("a settlement", async () => {
      const ends = settlements.map((one, index) => (goesOn[index] === true ? undefined : settle(one)));
      await Promise.all(ends.filter((end) => end !== undefined));
      return await Promise.all(settlements.map((one, index) => ends[index] ?? settle(one, one.next)));
    });
  }

  async find({ queue, id }: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return await this.#look(() => this.#lookAt(queue, () => this.#room(queue).inspector.find(id)));
  }

  async outcome({ queue, id, signal }: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    this.#checkOpen();
    const room = this.#room(queue);
    const over = AbortSignal.any([signal, this.#closing.signal, room.gone]);
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
      const outcome = await this.#look(look);
      if (outcome === undefined) room.gone.throwIfAborted();
      return outcome;
    } catch (error) {
      room.gone.throwIfAborted();
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
        await pauseKey(room.store, key, paused);
        return;
      }
      const restore = (): Promise<boolean> => this.#keeper.restoreConsumers(queue);
      await this.#js.again(() => pauseQueue({ js: this.#js, subjects: this.#subjects, queue }, paused, restore));
      room.knowPaused(paused);
    });
  }

  async deleteQueue({ queue, force }: port.DeleteQueueRequest): Promise<boolean> {
    return await this.#run("the deletion of a queue", async () => {
      await this.#keeper.setUpShared();
      const room = async (): Promise<QueueRoom> => this.#rooms.get(queue) ?? (await this.#visit(queue));
      const isDeleted = await deleteQueue({ ...this.#deletionParts, wire: this.#wire, queue, force, room });
      this.#rooms.get(queue)?.missing();
      return isDeleted;
    });
  }

  async queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return await this.#look(async () => {
      await this.#keeper.setUpShared();
      const subjects = await this.#js.subjects(this.#subjects.shared, this.#subjects.allQueueRecords);
      const names = [...subjects.keys()]
        .map(lastToken)
        .filter((name) => request.queue === undefined || name === request.queue);
      const reports = await Promise.all(names.map((name) => this.#report(name)));
      return reports.filter((report) => report !== undefined);
    });
  }

  async keys(request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    const look = async (): Promise<readonly port.KeyReport[]> => {
      const room = this.#room(request.queue);
      await room.quiet();
      return await room.inspector.keys(request);
    };
    return await this.#look(() => this.#lookAt(request.queue, look));
  }

  async dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    const look = (): Promise<readonly port.DeadReport[]> => this.#room(request.queue).inspector.dead(request);
    return await this.#look(() => this.#lookAt(request.queue, look));
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

  async repairs(): Promise<readonly port.Repair[]> {
    return await this.#run("a look for damage", async () => {
      const storeOf = async (queue: string): Promise<KeyStore> =>
        (this.#rooms.get(queue) ?? (await this.#visit(queue))).store;
      return repairsOf(this.#js, await scanStore(this.#js, this.#subjects), storeOf);
    });
  }

  get caution(): port.Finding | undefined {
    const { config } = this.#keeper;
    const finding = config === undefined ? undefined : durability(config);
    return finding?.severity === "ok" ? undefined : finding;
  }

  onAway(listener: (away: BatonError | undefined) => void): void {
    tellAway(this.#wire, this.#clock, (away) => {
      if (!this.#closing.signal.aborted) listener(away);
    });
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    // A server that is away must not keep a process from ending.
    const late = pause(this.#clock, CLOSE_MS);
    // Those who wait for locks leave their places, for which the store is still needed.
    await Promise.race([this.#locks.close(), late]);
    this.#closing.abort();
    await Promise.race([Promise.allSettled(this.#underWay), late]);
    const closing = Promise.allSettled([...Array.from(this.#rooms.values(), (room) => room.close()), ...this.#formers]);
    await Promise.race([closing, late]);
    await Promise.race([this.#requests.quiet(), late]);
    this.#elections.close();
    this.#requests.close();
    await Promise.race([this.#wire.close(), Promise.all([late, pause(this.#clock, LAST_WORD_MS)])]);
  }

  /** Nobody else will say that what was asked of the leader before is never answered. */
  #elected({ stream, consumer }: Elected): void {
    if (consumer === undefined) {
      this.#requests.giveUp((subject) => this.#subjects.streamOf(subject) === stream);
      return;
    }
    this.#requests.giveUp((subject) => `${subject}.`.includes(`.${stream}.${consumer}.`));
    for (const room of this.#rooms.values()) room.elected(stream, consumer);
  }

  get #inbox(): string {
    return `${this.#settings.inbox}.${this.#nonces.own}`;
  }

  get #deletionParts(): DeletionParts {
    return { js: this.#js, clock: this.#clock, subjects: this.#subjects, newId: () => this.#nonces.next() };
  }

  async #declare(queue: string, levels: readonly string[] | undefined): Promise<QueueRoom> {
    await this.#keeper.setUpShared();
    for (;;) {
      const record = await declareQueue(this.#js, this.#subjects, queue, levels, (name, stored) =>
        waitForDeletion(this.#deletionParts, name, stored),
      );
      try {
        return await this.#openedRoom(queue, record, record.isNew);
      } catch (error) {
        // It was deleted in between, or is being deleted.
        if (error instanceof StreamClosed) await this.#keeper.waitUntilOpen(queue);
        else if (!(error instanceof QueueMissing)) throw error;
      }
    }
  }

  async #openedRoom(queue: string, record: QueueRecord, isNew: boolean): Promise<QueueRoom> {
    const known = this.#rooms.get(queue);
    if (known !== undefined) return known;
    let declaring = this.#declaring.get(queue);
    if (declaring === undefined) {
      declaring = this.#js
        .again(() => this.#keeper.setUpQueue(queue, record, isNew))
        .then((consumers) => this.#keepRoom(queue, record, consumers))
        .finally(() => this.#declaring.delete(queue));
      this.#declaring.set(queue, declaring);
    }
    return await declaring;
  }

  #keepRoom(queue: string, record: QueueRecord, consumers: readonly ConsumerInfo[]): QueueRoom {
    const room = this.#rooms.get(queue) ?? this.#openRoom(queue, record, consumers);
    this.#rooms.set(queue, room);
    return room;
  }

  /** Damage to one queue stays with that queue. */
  async #report(queue: string): Promise<port.QueueReport | undefined> {
    try {
      return await this.#lookAt(queue, async () => (this.#rooms.get(queue) ?? (await this.#visit(queue))).report());
    } catch (error) {
      // It was listed a moment ago.
      if (error instanceof QueueMissing) return undefined;
      if (!(error instanceof Damaged)) throw error;
      const none = { waiting: 0, delayed: 0, running: 0, dead: 0 };
      return { queue, paused: false, levels: [], ...none, damage: error.message };
    }
  }

  /** A look at a queue that is deleted meanwhile fails in many ways, for one reason. */
  async #lookAt<T>(queue: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Damaged || (await readQueue(this.#js, this.#subjects, queue)) !== undefined) throw error;
      this.#rooms.get(queue)?.missing();
      throw undeclared(queue);
    }
  }

  /** A queue that this handle only looks at. One that is closed is not opened for that. */
  async #visit(queue: string): Promise<QueueRoom> {
    const record = await readQueue(this.#js, this.#subjects, queue);
    if (record === undefined) throw undeclared(queue);
    if (record.deletion === undefined) {
      try {
        return await this.#openedRoom(queue, record, false);
      } catch (error) {
        if (!(error instanceof StreamClosed)) throw error;
      }
    }
    return this.#keepRoom(queue, record, await this.#keeper.consumersOf(queue, record));
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
      fewestTogether: this.#settings.sync === "always" ? this.#fewestTogether : undefined,
      subjects: this.#subjects.of(queue),
      shared: this.#subjects.shared,
      inbox: this.#inbox,
      consumers,
      onMissing: () => this.#former(queue),
      readQueue: () => readQueue(this.#js, this.#subjects, queue),
      restore: () => this.#keeper.restoreConsumers(queue),
    });
  }

  /** It was deleted: the handle knows it no more. */
  #former(queue: string): void {
    const room = this.#rooms.get(queue);
    if (room === undefined) return;
    this.#rooms.delete(queue);
    // Once those who wait in it have heard.
    const closing = pause(this.#clock, 0)
      .then(() => room.close())
      .catch(() => undefined)
      .finally(() => this.#formers.delete(closing));
    this.#formers.add(closing);
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
      return await tracked(this.#underWay, work());
    } catch (error) {
      throw error instanceof SwitchedOff ? new NotServed(error) : explained("a look", error);
    }
  }

  async #run<T>(what: string, work: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    return await this.#explained(what, work);
  }

  /** What is under way already comes to its end while this is being closed. */
  async #explained<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await tracked(this.#underWay, work());
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

/** Work that ends at once when nobody serves its first write: then nothing of it was done. */
async function served<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SwitchedOff) throw new NotServed(error);
    throw error;
  }
}

function gone(queue: string, id: string): BatonError {
  return new BatonError(
    "STORE_CORRUPT",
    `Item ${id} is gone: somebody deleted the stream of queue ${queue} after it was accepted. Nobody will run it. ` +
      "Submit it again under another id.",
  );
}

function undeclared(queue: string): QueueMissing {
  return new QueueMissing(queue);
}

/** With a queue that is deleted its leases are lost. */
async function lostWith<T>(asking: Promise<T>, lost: T): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof QueueMissing) return lost;
    throw error;
  }
}

/** About 70 bits: letters and digits, which are safe in every subject. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => (byte % 36).toString(36)).join("");
}

function explained(what: string, cause: unknown): BatonError {
  if (cause instanceof BatonError) return cause;
  return new BatonError("STORE_UNAVAILABLE", `The NATS server could not do ${what}: ${String(cause)}`, { cause });
}
