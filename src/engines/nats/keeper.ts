/**
 * Makes streams and consumers when a queue is first used, and looks after them when the server says that something is gone: nobody serves a
 * subject, or a pull is refused.
 *
 * A consumer that somebody deleted is made anew: it delivers every ready key again, and nothing is lost, because a delivery is a hint. A stream takes its
 * items and leases with it. Then the queue is missing, for all who use it, until it is declared again; its new stream begins beyond the old one's sequences, so
 * that fences rise.
 */
import { type Clock, pause } from "../../domain/clock.ts";
import { QueueMissing } from "../../domain/errors.ts";
import type { ConsumerInfo, StreamConfig, StreamInfo } from "./api-types.ts";
import { firstSequence } from "./fence-room.ts";
import type { JetStream } from "./jetstream.ts";
import { tellAll } from "./losses.ts";
import type { StoreSettings } from "./options.ts";
import { Lost } from "./requests.ts";
import { type DeletionParts, waitUntilOpen } from "./deletion.ts";
import { alignPauses } from "./pauses.ts";
import { consumersOf, isClosed, type QueueRecord, readQueue, setUpQueue, setUpShared, StreamClosed } from "./setup.ts";
import type { Subjects } from "./subjects.ts";
import type { Wire } from "./wire.ts";

/** A stream is gone if the server says so twice, so far apart: one that is just starting must not be taken at its word. */
const CERTAIN_MS = 250;
/** So long before the new stream is there, those who have leases of the old one are told. */
const TOLD_MS = 250;
/** Nobody answers for a stream that is choosing its leader; one that is gone is told of at once. Whoever asks has better things to do than to wait. */
const PATIENCE_MS = 250;
/** What was there a moment ago is not looked for again: thousands may ask at once. */
const LOOK_MS = 100;

/** A queue that this process uses. */
export interface Kept {
  /** These are its consumers. True: not all of them are those that were known. */
  know(consumers: readonly ConsumerInfo[]): boolean;
  /** It was deleted. */
  missing(): void;
}

export class Keeper {
  readonly #js: JetStream;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #subjects: Subjects;
  readonly #settings: StoreSettings;
  readonly #rooms: ReadonlyMap<string, Kept>;
  readonly #deletionParts: DeletionParts;
  /** What is being made anew, by name. */
  readonly #restoring = new Map<string, Promise<boolean>>();
  /** By the monotonic clock. */
  readonly #lookedAt = new Map<string, number>();
  #shared: Promise<void> | undefined;
  #config: StreamConfig | undefined;
  /** The server's clock, and this process's monotonic one at that moment. */
  #server: { readonly at: number; readonly since: number } | undefined;

  constructor(parts: {
    readonly js: JetStream;
    readonly wire: Wire;
    readonly clock: Clock;
    readonly subjects: Subjects;
    readonly settings: StoreSettings;
    readonly rooms: ReadonlyMap<string, Kept>;
    readonly deletionParts: DeletionParts;
  }) {
    this.#js = parts.js;
    this.#wire = parts.wire;
    this.#clock = parts.clock;
    this.#subjects = parts.subjects;
    this.#settings = parts.settings;
    this.#rooms = parts.rooms;
    this.#deletionParts = parts.deletionParts;
    this.#js.restoreBy((what) => this.#restore(what));
  }

  /** Of the stream that all queues share; undefined as long as nobody has used it. */
  get config(): StreamConfig | undefined {
    return this.#config;
  }

  async setUpShared(): Promise<void> {
    this.#shared ??= this.#ensureShared();
    try {
      await this.#shared;
    } catch (error) {
      this.#shared = undefined;
      throw error;
    }
  }

  /** @param isNew nobody has used the queue before, so nobody has a lease */
  async setUpQueue(queue: string, record: QueueRecord, isNew = false): Promise<readonly ConsumerInfo[]> {
    const own = this.#subjects.of(queue);
    let isMadeAnew = false;
    const ensured = await setUpQueue(this.#js, own, record, this.#settings, async () => {
      isMadeAnew = !isNew;
      if (isMadeAnew) {
        await this.#assertThere(queue);
        tellAll(this.#wire, own);
        await pause(this.#clock, TOLD_MS);
      }
      return this.#firstSequence();
    });
    if (isMadeAnew) {
      // For those who were just being given a lease.
      tellAll(this.#wire, own);
      await this.#assertThere(queue);
    }
    if (ensured.some((one) => one.isNew)) await this.#assertAsPaused(queue, record);
    return ensured.map(({ consumer }) => consumer);
  }

  /** Without making anything: the queue is only looked at. */
  async consumersOf(queue: string, record: QueueRecord): Promise<readonly ConsumerInfo[]> {
    const wanted = consumersOf(this.#subjects.of(queue), record);
    const found = await Promise.all(
      wanted.map(([stream, { durable_name }]) => this.#js.consumerInfo(stream, durable_name)),
    );
    return found.filter((consumer) => consumer !== undefined);
  }

  /** The record was read before consumers were made as it says: the queue may have been paused since, or resumed. */
  async #assertAsPaused(queue: string, { paused }: QueueRecord): Promise<void> {
    const record = await readQueue(this.#js, this.#subjects, queue);
    if (record === undefined || record.paused === paused) return;
    await alignPauses({ js: this.#js, subjects: this.#subjects, queue });
  }

  /** The stream was found closed. Returns when the queue is in use again, or deleted. */
  async waitUntilOpen(queue: string): Promise<boolean> {
    return await waitUntilOpen(this.#deletionParts, queue);
  }

  /** A stream must not be made for a queue that was deleted since it was looked up: nobody would know of it. */
  async #assertThere(queue: string): Promise<void> {
    const record = await readQueue(this.#js, this.#subjects, queue);
    if (record === undefined && (await this.#isThere(this.#subjects.shared))) throw new QueueMissing(queue);
    if (record?.deletion !== undefined) throw new StreamClosed(queue);
  }

  /** A pull was refused. True: its consumer is not the one that it was. */
  async restoreConsumers(queue: string): Promise<boolean> {
    const room = this.#rooms.get(queue);
    if (room === undefined) return false;
    return await this.#once(`${queue} consumers`, async () => {
      await this.#share(queue, () => this.#isOpen(queue, room));
      const record = await readQueue(this.#js, this.#subjects, queue);
      if (record === undefined) throw missing(queue, room);
      return room.know(await this.setUpQueue(queue, record));
    });
  }

  async #restore(what: string): Promise<boolean> {
    const queue = this.#subjects.queueOf(what);
    if (queue === undefined) return await this.#once("", () => this.#restoreShared());
    const room = this.#rooms.get(queue);
    return room !== undefined && (await this.#once(queue, () => this.#isOpen(queue, room)));
  }

  /** True: the queue was in the middle of its deletion, and is in use again. Throws if it is gone. */
  async #isOpen(queue: string, room: Kept): Promise<boolean> {
    const own = this.#subjects.of(queue);
    if (!(await this.#isThere(own.stream))) {
      await pause(this.#clock, CERTAIN_MS);
      if (await this.#isThere(own.stream)) return true;
      throw missing(queue, room);
    }
    // A server whose JetStream is switched off answers nothing at all.
    const late = pause(this.#clock, PATIENCE_MS).then(() => undefined);
    const info = await Promise.race([this.#js.streamInfoOnce(own.stream).catch(() => undefined), late]);
    if (info === undefined || !isClosed(info, own)) return false;
    if (await this.waitUntilOpen(queue)) return true;
    throw missing(queue, room);
  }

  /**
   * The stream that all queues share is made anew for those who need it, and queues with the next declaration. Locks, ids, dead letters and what was
   * delayed are gone, and so is the life of every lease: its holder learns at its next sign of life.
   */
  async #restoreShared(): Promise<boolean> {
    if (await this.#isThere(this.#subjects.shared)) return false;
    await pause(this.#clock, CERTAIN_MS);
    if (await this.#isThere(this.#subjects.shared)) return true;
    await this.#ensureShared();
    for (const room of this.#rooms.values()) room.missing();
    return true;
  }

  /** Unless the server says that there is none. */
  async #isThere(stream: string): Promise<boolean> {
    const late = pause(this.#clock, PATIENCE_MS).then(() => true);
    const found = this.#js.streamInfoOnce(stream).then(
      (info) => {
        if (info !== undefined) this.#note(info);
        return info !== undefined;
      },
      () => true,
    );
    return await Promise.race([found, late]);
  }

  async #ensureShared(): Promise<void> {
    const info = await setUpShared(this.#js, this.#subjects, this.#settings, () =>
      Promise.resolve(this.#firstSequence()),
    );
    this.#config = info.config;
    this.#note(info);
  }

  #note({ ts }: StreamInfo): void {
    const at = Date.parse(ts ?? "");
    if (Number.isFinite(at)) this.#server = { at, since: this.#clock.monotonic() };
  }

  /** By the server's clock, which is the same for all, as far as it is known; and beyond all that this process has written. */
  #firstSequence(): number {
    const server = this.#server;
    const serverNow = server === undefined ? 0 : server.at + this.#clock.monotonic() - server.since;
    const now = Math.max(this.#clock.wall(), serverNow);
    return firstSequence(now, this.#js.highest, this.#config?.first_seq ?? 0);
  }

  /** One at a time, for all who ask; and not again at once. False: there was nothing to be made, or the server is away. */
  #once(name: string, work: () => Promise<boolean>): Promise<boolean> {
    const lookedAt = this.#lookedAt.get(name) ?? Number.NEGATIVE_INFINITY;
    if (!this.#restoring.has(name) && this.#clock.monotonic() - lookedAt < LOOK_MS) return Promise.resolve(false);
    return this.#share(name, work);
  }

  #share(name: string, work: () => Promise<boolean>): Promise<boolean> {
    const known = this.#restoring.get(name);
    if (known !== undefined) return known;
    const restoring = work()
      .catch((error: unknown) => {
        // It is closed just now: whoever asks again waits for it.
        if (error instanceof Lost || error instanceof StreamClosed) return false;
        throw error;
      })
      .finally(() => {
        this.#restoring.delete(name);
        this.#lookedAt.set(name, this.#clock.monotonic());
      });
    this.#restoring.set(name, restoring);
    return restoring;
  }
}

function missing(queue: string, room: Kept): QueueMissing {
  room.missing();
  return new QueueMissing(queue);
}
