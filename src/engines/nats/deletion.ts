/**
 * Whose work the deletion of a queue is. It stands in the queue's record, which changes by compare-and-swap:
 *
 *   in use ──▶ closing ──▶ deleted ──▶ no record
 *     ▲───────────┘
 *
 * Streams are closed, opened and deleted without a condition, so only one process at a time may do so: the one that wrote the record last. It writes it
 * again while it goes on, and does nothing more when it cannot. A record that nobody writes for a while is that of a deletion that was cut off: whoever needs the queue takes it over, and
 * opens a queue that was closed, or ends the deletion of one that was deleted.
 */
import { type Clock, pause } from "../../domain/clock.ts";
import type { Stored } from "./api-replies.ts";
import type { JetStream } from "./jetstream.ts";
import { isClosed, type QueueRecord, recordIn } from "./setup.ts";
import type { QueueSubjects, Subjects } from "./subjects.ts";

/** Older than this, the record is written again before the next step. What is sent then has the rest of the time to reach the server. */
const OWN_MS = 1_500;
/** A record that stands unchanged for so long is that of a deletion that was cut off. */
export const CUT_OFF_MS = 5_000;
const LOOK_MS = 50;

export interface DeletionParts {
  readonly js: JetStream;
  readonly clock: Clock;
  readonly subjects: Subjects;
  readonly newId: () => string;
}

/** Another process has taken the deletion over. */
export class TakenOver extends Error {
  override readonly name = "TakenOver";
}

/** Resolves to false as soon as the record changes: the deletion goes on elsewhere, or is over. */
export async function isCutOff({ js, clock, subjects }: DeletionParts, stored: Stored): Promise<boolean> {
  for (const end = clock.monotonic() + CUT_OFF_MS; clock.monotonic() < end;) {
    await pause(clock, LOOK_MS);
    const now = await js.last(subjects.shared, stored.subject);
    if (now?.sequence !== stored.sequence) return false;
  }
  return true;
}

/** Waits for somebody else's deletion, and takes it over if it was cut off. Returns when the record has changed. */
export async function waitForDeletion(parts: DeletionParts, queue: string, stored: Stored): Promise<void> {
  if (!(await isCutOff(parts, stored))) return;
  const deletion = await Deletion.take(parts, queue, stored, false);
  try {
    if (deletion?.isDeleted === true) await deletion.finish();
    else await deletion?.reopen();
  } catch (error) {
    if (!(error instanceof TakenOver)) throw error;
  }
}

/** The stream was found closed. Returns when it is not any more; false: the queue is deleted. */
export async function waitUntilOpen(parts: DeletionParts, queue: string): Promise<boolean> {
  const { js, subjects } = parts;
  const own = subjects.of(queue);
  for (;;) {
    const stored = await js.last(subjects.shared, own.queueRecord());
    const record = stored === undefined ? undefined : recordIn(queue, stored);
    if (stored === undefined || record?.deletion?.step === "deleted") return false;
    const info = await js.streamInfo(own.stream);
    if (info === undefined || !isClosed(info, own)) return true;
    // Closed without a word in the record: so late that somebody else had opened it already.
    await waitForDeletion(parts, queue, stored);
  }
}

export class Deletion {
  readonly #parts: DeletionParts;
  readonly #own: QueueSubjects;
  #record: QueueRecord;
  #sequence: number;
  /** When the record was written last, by the monotonic clock, before it was sent. */
  #since: number;

  private constructor(parts: DeletionParts, queue: string, record: QueueRecord, sequence: number, since: number) {
    this.#parts = parts;
    this.#own = parts.subjects.of(queue);
    this.#record = record;
    this.#sequence = sequence;
    this.#since = since;
  }

  /** Undefined: somebody else has written the record meanwhile. */
  static async take(
    parts: DeletionParts,
    queue: string,
    stored: Stored,
    force: boolean,
  ): Promise<Deletion | undefined> {
    const record = recordIn(queue, stored);
    // Whoever ends a deletion does so as it was begun.
    const begun = record.deletion?.step === "deleted" ? record.deletion : { step: "closing" as const, force };
    const deletion = new Deletion(parts, queue, record, stored.sequence, 0);
    try {
      await deletion.#write({ ...record, deletion: { ...begun, by: parts.newId() } });
      return deletion;
    } catch (error) {
      if (error instanceof TakenOver) return undefined;
      throw error;
    }
  }

  get isDeleted(): boolean {
    return this.#record.deletion?.step === "deleted";
  }

  /** From here on nothing is accepted, and nobody else opens the stream. */
  async close(): Promise<void> {
    await this.#takes(this.#own.closed);
  }

  async reopen(): Promise<void> {
    await this.#takes(this.#own.all);
    await this.#endBy();
  }

  /** What other processes hear. */
  async mark(): Promise<void> {
    const force = this.#record.deletion?.force === true;
    // What is remembered from here on of a queue that was empty is remembered of one that is made anew.
    const before = this.#sequence;
    await this.#write({
      ...this.#record,
      deletion: { step: "deleted", force, by: this.#parts.newId(), ...(force ? {} : { before }) },
    });
  }

  /** Whether something came that no closed stream keeps away: items that are delayed are in the stream that all queues share. */
  async hasNew(): Promise<boolean> {
    const { js } = this.#parts;
    const info = await js.streamInfo(this.#own.stream);
    return (info !== undefined && !isClosed(info, this.#own)) || (await this.#hasDelayed());
  }

  /** Takes away what a queue that is deleted has left. */
  async finish(): Promise<void> {
    const { js, subjects } = this.#parts;
    const { allReceipts, allDead, allSessions, allWakes, allLater, allDue, stream, sharedStream, dueConsumer } =
      this.#own;
    const { force = false, before = this.#sequence } = this.#record.deletion ?? {};
    const filters = [allReceipts, allDead, allSessions, allWakes, ...(force ? [allLater, allDue] : [])];
    for (const filter of filters) await js.purge(sharedStream, filter, before);
    await this.#step(() => js.deleteStreamOnce(stream));
    await this.#step(() => js.deleteConsumerOnce(sharedStream, dueConsumer));
    // Submitted by a process that had not heard of the deletion yet: it has made the queue anew.
    if (await this.#hasDelayed()) await this.#endBy();
    else await js.remove(subjects.shared, this.#sequence);
  }

  async #hasDelayed(): Promise<boolean> {
    const { js, subjects } = this.#parts;
    for (const filter of [this.#own.allLater, this.#own.allDue])
      if ((await js.next(subjects.shared, filter, 1)) !== undefined) return true;
    return false;
  }

  async #takes(subject: string): Promise<void> {
    const { js } = this.#parts;
    const info = await js.streamInfo(this.#own.stream);
    if (info !== undefined) await this.#step(() => js.updateStreamOnce({ ...info.config, subjects: [subject] }));
  }

  async #endBy(): Promise<void> {
    const { levels, paused } = this.#record;
    await this.#write({ levels, paused });
  }

  /** Each try only while this process is the one that may. */
  async #step(act: () => Promise<unknown>): Promise<void> {
    const { js, clock, newId } = this.#parts;
    await js.again(async () => {
      const { deletion } = this.#record;
      if (deletion !== undefined && clock.monotonic() - this.#since > OWN_MS)
        await this.#write({ ...this.#record, deletion: { ...deletion, by: newId() } });
      await act();
    });
  }

  async #write(record: QueueRecord): Promise<void> {
    const { js, clock, subjects } = this.#parts;
    const subject = this.#own.queueRecord();
    const text = JSON.stringify(record);
    const since = clock.monotonic();
    const result = await js.putSurely(subject, text, { expect: this.#sequence, rollup: true });
    // A lost reply makes a write of ours look like that of another.
    const found = result.refused ? await js.last(subjects.shared, subject) : undefined;
    if (result.refused && (found === undefined || Buffer.from(found.data).toString() !== text)) throw new TakenOver();
    this.#sequence = result.refused ? (found?.sequence ?? 0) : result.sequence;
    this.#record = record;
    this.#since = since;
  }
}
