/**
 * What is remembered of an item beside its key: that its id was used, how it ended, its dead letter, and when it comes back.
 * Items without an id that nobody wants to remember have none of this.
 */
import type { Failure } from "../../domain/failure.ts";
import { withAttempts } from "../../engine/attempts.ts";
import type { Outcome } from "../../engine/port.ts";
import { decodeItem, decodeOutcome, decodeWith, encodeItem, encodeOutcome, encodeWith } from "./codec.ts";
import type { Stored } from "./api-replies.ts";
import { Damaged, readable } from "./damage.ts";
import type { JetStream } from "./jetstream.ts";
import { textOf } from "./key-token.ts";
import type { KeyItem, Todo } from "./state.ts";
import { lastToken, type QueueSubjects } from "./subjects.ts";

export interface Receipt {
  readonly key: string;
  readonly level: string;
  readonly at: number;
  /** The one item that this id stands for. Any other with the same id is void. */
  readonly unique: string;
  readonly keepMs: number;
  /** Its submitter has not heard yet that the item is in its place. */
  readonly pending?: true;
}

export interface FoundReceipt {
  readonly receipt: Receipt;
  readonly outcome: Outcome | undefined;
  readonly sequence: number;
}

export interface DeadLetter {
  readonly id: string;
  readonly key: string;
  readonly at: number;
  readonly failure: Failure;
  readonly item: KeyItem;
  readonly sequence: number;
  readonly revival?: Revival;
}

/** Somebody brings a dead letter back, since then, as an item of this name. */
interface Revival {
  readonly unique: string;
  readonly since: number;
}

export interface Delayed {
  readonly key: string;
  readonly dueAt: number;
  readonly item: KeyItem;
  readonly sequence: number;
}

/** One that has come due. */
export interface Due {
  readonly key: string;
  readonly item: KeyItem;
}

interface LetterLine {
  readonly id: string;
  readonly key: string;
  readonly at: number;
  readonly failure: Failure;
  readonly revival?: Revival;
}

/** Who brings a dead letter back and has not finished after so long, is gone: another may do it. */
const REVIVAL_MS = 10_000;
/** A submitter that dies before it hears of its item leaves this behind for so long. */
const PENDING_SECONDS = 3_600;
const DUE_PAGE = 64;

export class Receipts {
  readonly #js: JetStream;
  readonly #subjects: QueueSubjects;
  readonly #stream: string;
  readonly #levels: readonly string[];

  constructor(js: JetStream, subjects: QueueSubjects, stream: string, levels: readonly string[]) {
    this.#js = js;
    this.#subjects = subjects;
    this.#stream = stream;
    this.#levels = levels;
  }

  async find(id: string): Promise<FoundReceipt | undefined> {
    const stored = await this.#js.last(this.#stream, this.#subjects.receipt(id));
    if (stored === undefined) return undefined;
    return this.#certainly(`What is remembered of item ${id}`, stored, () => readReceipt(stored));
  }

  /** The same for several, with one request. */
  async findAll(ids: readonly string[]): Promise<ReadonlyMap<string, FoundReceipt | "damaged">> {
    const bySubject = new Map(ids.map((id) => [this.#subjects.receipt(id), id]));
    const all = await this.#js.lastOfAll(this.#stream, [...bySubject.keys()]);
    return new Map(
      all.map((stored) => [bySubject.get(stored.subject) ?? "", readable([stored], readReceipt)[0] ?? "damaged"]),
    );
  }

  of({ level, submittedAt, unique, keepMs }: KeyItem, key: string): Receipt {
    return { key, level: this.#levels[level] ?? "", at: submittedAt, unique, keepMs };
  }

  /** Reserves an id. Undefined: it is taken. */
  async reserve(id: string, receipt: Receipt, expect: number): Promise<number | undefined> {
    const data = encodeOutcome({ ...receipt, pending: true }, undefined);
    return await this.#swap(id, data, expect, PENDING_SECONDS);
  }

  /** The item is in its place. Undefined: somebody else took the id over meanwhile. */
  async confirm(id: string, receipt: Receipt, expect: number): Promise<number | undefined> {
    return await this.#swap(id, encodeOutcome(receipt, undefined), expect, undefined);
  }

  async forget(sequence: number): Promise<void> {
    await this.#js.remove(this.#stream, sequence);
  }

  /** How an item ended, kept from now on as long as it was submitted to be. */
  async conclude(
    id: string,
    key: string,
    item: KeyItem,
    outcome: Outcome,
    { lasting = false, again = false }: { readonly lasting?: boolean; readonly again?: boolean } = {},
  ): Promise<void> {
    const receipt = this.of(item, key);
    const options = lasting ? {} : { ttlSeconds: ttlOf(item) };
    const data = encodeOutcome(receipt, outcome);
    for (;;) {
      const found = await this.find(id);
      const isOther = found !== undefined && (found.receipt.unique !== item.unique || found.outcome !== undefined);
      // What was said already, or of another item with this id, is not said over: this may be done late, and twice.
      if (isOther && !again) return;
      const result = await this.#js.putSurely(this.#subjects.receipt(id), data, {
        expect: found?.sequence ?? 0,
        rollup: true,
        ...options,
      });
      if (!result.refused) return;
    }
  }

  /** Does what a change of a key has to leave elsewhere. Doing it twice does no harm. */
  async perform(todo: Todo, key: string): Promise<void> {
    switch (todo.type) {
      case "ended":
        await this.conclude(itemId(todo.item, key), textOf(key), todo.item, todo.outcome);
        break;
      case "dead":
        await this.bury(todo.item, key, todo.at, todo.failure);
        break;
      case "later":
        await this.delay(key, { ...todo.item, dueAt: undefined }, todo.dueAt, true);
        break;
      case "wake":
        await this.#js.putSurely(this.#subjects.wake(key), "", {
          rollup: true,
          schedule: { at: todo.dueAt, target: this.#subjects.due(key) },
        });
        break;
    }
  }

  async bury(item: KeyItem, key: string, at: number, failure: Failure): Promise<void> {
    const id = itemId(item, key);
    await this.#putLetter({ id, key: textOf(key), at, failure }, item);
    if (item.keepMs > 0) {
      const outcome: Outcome = {
        state: "dead",
        at,
        attempt: item.attempts,
        failure,
        ...withAttempts(item.tried ?? []),
      };
      await this.conclude(id, textOf(key), item, outcome, { lasting: true });
    }
  }

  /** The letter of an earlier life of the item may still be there: whoever brought it back removes it last. */
  async #putLetter(line: LetterLine, item: KeyItem): Promise<void> {
    const data = encodeWith(line, item);
    for (let expect = 0; ;) {
      const { refused } = await this.#js.putSurely(this.#subjects.dead(line.id), data, { expect, rollup: true });
      if (!refused) return;
      const found = await this.letter(line.id);
      if (found !== undefined && (found.item.unique === item.unique || found.revival === undefined)) return;
      expect = found?.sequence ?? 0;
    }
  }

  /**
   * The right to bring a dead letter back, for one of those who try at once: the sequence under which the letter stands from now on. Undefined:
   * somebody else brings it back, or has.
   */
  async claimLetter({ item, sequence, ...line }: DeadLetter, unique: string, now: number): Promise<number | undefined> {
    const data = encodeWith({ ...line, revival: { unique, since: now } } satisfies LetterLine, item);
    const put = await this.#js.putSurely(this.#subjects.dead(line.id), data, { expect: sequence, rollup: true });
    if (!put.refused) return put.sequence;
    // It may have been this very claim, whose reply was lost.
    const found = await this.letter(line.id);
    return found?.revival?.unique === unique ? found.sequence : undefined;
  }

  /** The id of a dead letter that is tried again stands for a living item. */
  async reopen(id: string, key: string, item: KeyItem): Promise<void> {
    const receipt = this.of(item, key);
    await this.#js.putSurely(this.#subjects.receipt(id), encodeOutcome(receipt, undefined), { rollup: true });
  }

  async letter(id: string): Promise<DeadLetter | undefined> {
    const stored = await this.#js.last(this.#stream, this.#subjects.dead(id));
    if (stored === undefined) return undefined;
    return this.#certainly(`The dead letter ${id}`, stored, () => readLetter(stored));
  }

  /** Dead letters behind a sequence, oldest first. */
  async letters(after: number, limit: number): Promise<readonly DeadLetter[]> {
    const letters: DeadLetter[] = [];
    for (let from = after; ;) {
      const stored = await this.#js.nextFew(this.#stream, this.#subjects.allDead, from + 1, limit - letters.length);
      const read = readable(stored, readLetter);
      letters.push(...read);
      const last = stored.at(-1);
      if (last === undefined || read.length === stored.length) return letters;
      from = last.sequence;
    }
  }

  async removeLetter(sequence: number): Promise<boolean> {
    return await this.#js.remove(this.#stream, sequence);
  }

  async delay(key: string, item: KeyItem, dueAt: number, front: boolean): Promise<void> {
    const unique = `${front ? "f" : "b"}${item.unique}`;
    await this.#js.putSurely(this.#subjects.later(key, unique), encodeItem({ ...item, dueAt, id: itemId(item, key) }), {
      rollup: true,
      // Whoever sees the change may do this again, perhaps after the item has come due.
      name: `${unique}.${item.attempts}.${dueAt}`,
      schedule: { at: dueAt, target: this.#subjects.due(key) },
    });
  }

  /** The delayed items of a key, in the order in which they were submitted. */
  async delayed(key: string): Promise<readonly Delayed[]> {
    const stored = await this.#js.lastOfEach(this.#stream, this.#subjects.laterOf(key));
    const delayed = readable(stored, ({ data, sequence }): Delayed => {
      const item = decodeItem(data, sequence);
      return { key, dueAt: item.dueAt ?? 0, item, sequence };
    });
    return delayed.toSorted((a, b) => a.sequence - b.sequence);
  }

  /** Items that have come due, and that nobody has brought to their keys yet. What has no content is the end of a back-off. */
  async *due(filter: string): AsyncGenerator<Due> {
    for (let from = 1; ;) {
      const page = await this.#js.nextFew(this.#stream, filter, from, DUE_PAGE);
      const items = page.filter(({ data }) => data.length > 0);
      yield* readable(items, ({ subject, data, sequence }) => ({
        key: lastToken(subject),
        item: decodeItem(data, sequence),
      }));
      const last = page.at(-1);
      if (last === undefined || page.length < DUE_PAGE) return;
      from = last.sequence + 1;
    }
  }

  async isAnyDue(key: string): Promise<boolean> {
    for await (const _ of this.due(this.#subjects.due(key))) return true;
    return false;
  }

  /** Whether something of the key comes later, or has come due and is not there yet. */
  async hasDelayed(key: string): Promise<boolean> {
    // In this order: what is delayed comes due, and not the other way round.
    if ((await this.#js.next(this.#stream, this.#subjects.laterOf(key), 1)) !== undefined) return true;
    return await this.isAnyDue(key);
  }

  /**
   * A delayed item ends before it comes due. False: it has come due. If it is to be remembered, that it was accepted is written first: otherwise nothing
   * would be known of it until its outcome is written.
   */
  async endDelayed({ key, item, sequence }: Delayed, todo: readonly Todo[]): Promise<boolean> {
    if (todo.length > 0) await this.#sayAccepted(item, key);
    if (!(await this.#js.remove(this.#stream, sequence))) return false;
    for (const entry of todo) await this.perform(entry, key);
    return true;
  }

  async #sayAccepted(item: KeyItem, key: string): Promise<void> {
    const data = encodeOutcome(this.of(item, textOf(key)), undefined);
    // Refused: it is known.
    await this.#js.putSurely(this.#subjects.receipt(itemId(item, key)), data, { expect: 0, ttlSeconds: ttlOf(item) });
  }

  #certainly<T>(what: string, stored: Stored, read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw new Damaged(`${what} of queue ${this.#subjects.queue}`, stored, error);
    }
  }

  async #swap(
    id: string,
    data: Uint8Array | string,
    expect: number,
    ttlSeconds: number | undefined,
  ): Promise<number | undefined> {
    const subject = this.#subjects.receipt(id);
    let lost = false;
    return await this.#js.again(async () => {
      const options = { expect, rollup: expect !== 0, ...(ttlSeconds === undefined ? {} : { ttlSeconds }) };
      try {
        const result = await this.#js.put(subject, data, options);
        if (!result.refused) return result.sequence;
      } catch (error) {
        lost = true;
        throw error;
      }
      if (!lost) return undefined;
      const last = await this.#js.last(this.#stream, subject);
      return last !== undefined && Buffer.from(data).equals(last.data) ? last.sequence : undefined;
    });
  }
}

function ttlOf({ keepMs }: KeyItem): number {
  return Math.max(1, Math.ceil(keepMs / 1_000));
}

/** Somebody is at it, to bring it back. */
export function isClaimed({ revival }: DeadLetter, now: number): boolean {
  return revival !== undefined && now - revival.since < REVIVAL_MS;
}

function readReceipt({ data, sequence }: Stored): FoundReceipt {
  const { extra, outcome } = decodeOutcome<Receipt>(data);
  return { receipt: extra, outcome, sequence };
}

function readLetter({ data, sequence }: { readonly data: Uint8Array; readonly sequence: number }): DeadLetter {
  const { extra, item } = decodeWith<LetterLine>(data);
  return { ...extra, item, sequence };
}

/** The id that an item goes by: its own, or one that says at which key to look. */
export function itemId(item: KeyItem, key: string): string {
  return item.id ?? assignedId(key, item.unique);
}

/** The key token of an id that an engine gave. */
export function keyOfId(id: string): string | undefined {
  return /^@([-0-9A-Z_a-z]+)\.[0-9a-zA-Z]+$/.exec(id)?.[1];
}

export function assignedId(key: string, unique: string): string {
  return `@${key}.${unique}`;
}
