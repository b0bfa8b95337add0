/**
 * What is remembered of an item beside its key: that its id was used, how it ended, its dead letter, and when it comes back.
 * Items without an id that nobody wants to remember have none of this.
 */
import type { Failure } from "../../domain/failure.ts";
import type { Outcome } from "../../engine/port.ts";
import { decodeItem, decodeOutcome, decodeWith, encodeItem, encodeOutcome, encodeWith } from "./codec.ts";
import type { JetStream } from "./jetstream.ts";
import { textOf } from "./key-token.ts";
import type { KeyItem, Todo } from "./state.ts";
import type { QueueSubjects } from "./subjects.ts";

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
}

export interface Delayed {
  readonly key: string;
  readonly dueAt: number;
  readonly item: KeyItem;
  readonly sequence: number;
}

interface LetterLine {
  readonly id: string;
  readonly key: string;
  readonly at: number;
  readonly failure: Failure;
}

/** A submitter that dies before it hears of its item leaves this behind for so long. */
const PENDING_SECONDS = 3_600;

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
    const { extra, outcome } = decodeOutcome<Receipt>(stored.data);
    return { receipt: extra, outcome, sequence: stored.sequence };
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
    const options = lasting ? {} : { ttlSeconds: Math.max(1, Math.ceil(item.keepMs / 1_000)) };
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
    const line: LetterLine = { id, key: textOf(key), at, failure };
    // Refused: it is there already.
    await this.#js.putSurely(this.#subjects.dead(id), encodeWith(line, item), { expect: 0 });
    if (item.keepMs > 0) {
      const outcome: Outcome = { state: "dead", at, attempt: item.attempts, failure };
      await this.conclude(id, textOf(key), item, outcome, { lasting: true });
    }
  }

  /** The id of a dead letter that is tried again stands for a living item. */
  async reopen(id: string, key: string, item: KeyItem): Promise<void> {
    const receipt = this.of(item, key);
    await this.#js.putSurely(this.#subjects.receipt(id), encodeOutcome(receipt, undefined), { rollup: true });
  }

  async letter(id: string): Promise<DeadLetter | undefined> {
    const stored = await this.#js.last(this.#stream, this.#subjects.dead(id));
    return stored === undefined ? undefined : readLetter(stored);
  }

  /** Dead letters behind a sequence, oldest first. */
  async letters(after: number, limit: number): Promise<readonly DeadLetter[]> {
    const stored = await this.#js.nextFew(this.#stream, this.#subjects.allDead, after + 1, limit);
    return stored.map(readLetter);
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
    const delayed = stored.map(({ data, sequence }): Delayed => {
      const item = decodeItem(data, sequence);
      return { key, dueAt: item.dueAt ?? 0, item, sequence };
    });
    return delayed.toSorted((a, b) => a.sequence - b.sequence);
  }

  async hasDelayed(key: string): Promise<boolean> {
    return (await this.#js.next(this.#stream, this.#subjects.laterOf(key), 1)) !== undefined;
  }

  /** True: it was still there, so it will not come due any more. */
  async takeBack({ sequence }: Delayed): Promise<boolean> {
    return await this.#js.remove(this.#stream, sequence);
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
