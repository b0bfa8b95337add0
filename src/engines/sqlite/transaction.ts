import type { Instant } from "../../domain/clock.ts";
import type { LostLease } from "../../wake/wake.ts";
import { KeyTable } from "./key-table.ts";
import type { KeyRow } from "./key-row.ts";
import { type QueueRow, QueueTable } from "./queue-table.ts";
import { integer, type Statement, type Sql } from "./rows.ts";

/** What the steps of one transaction share: the time, the counter, the rows they touched, and what is worth telling. */
export class Transaction {
  readonly keys: KeyTable;
  readonly queues: QueueTable;
  /** Whole milliseconds, rounded so that a lease never looks longer to its holder than it is in the store. */
  wall = 0;
  monotonic = 0;
  /** Queues in which anybody who waits, in any process, should look again: one goes on, or a key is kept for a hold. */
  readonly stirred: Set<number> = new Set();
  /** Queues in which something will happen at a later time, which one process that waits should know of. */
  readonly later: Set<number> = new Set();
  /** Queues that were deleted: whoever waits for something in them should know. */
  readonly deleted: Set<string> = new Set();
  /** Leases that ran out. */
  readonly lost: LostLease[] = [];
  /** Remembered items that ended. */
  readonly ended: { readonly queue: number; readonly id: string }[] = [];
  /** Cells that were written or removed; and those of them that other processes are to hear of at once. */
  readonly cells: Set<string> = new Set();
  readonly cellNews: Set<string> = new Set();
  /** Keys that became ready in this transaction. */
  readonly opened: KeyRow[] = [];
  #counter = 0;
  #counterStored = 0;
  /** Changes when another process has written; what is in memory is then worth nothing. */
  #version = -1;
  readonly #selectVersion: Statement;
  readonly #selectCounter: Statement;
  readonly #saveCounter: Statement;

  constructor(sql: Sql) {
    this.keys = new KeyTable(sql);
    this.queues = new QueueTable(sql);
    this.#selectVersion = sql("PRAGMA data_version");
    this.#selectCounter = sql("SELECT value FROM store WHERE name = 'counter'");
    this.#saveCounter = sql("UPDATE store SET value = ? WHERE name = 'counter'");
  }

  /** Another process has written. Stays set until somebody has looked at what that means for those who wait. */
  foreign = false;

  begin(now: Instant): void {
    this.wall = Math.floor(now.wall);
    this.monotonic = Math.floor(now.monotonic);
    for (const noted of [this.stirred, this.later, this.deleted, this.cells, this.cellNews]) noted.clear();
    for (const noted of [this.lost, this.ended, this.opened]) noted.length = 0;
    const version = integer(this.#selectVersion.get() ?? [], 0);
    this.keys.trim();
    if (version === this.#version) return;
    this.forget();
    this.foreign = true;
    this.#version = version;
    this.#counter = integer(this.#selectCounter.get() ?? [], 0);
    this.#counterStored = this.#counter;
  }

  /** Writes back what is still only in memory. The caller commits. */
  finish(): void {
    this.keys.flush();
    this.queues.flush();
    if (this.#counter !== this.#counterStored) this.#saveCounter.run(this.#counter);
    this.#counterStored = this.#counter;
  }

  /** After a transaction that failed: nothing in memory can be trusted. */
  forget(): void {
    this.#version = -1;
    this.keys.forget();
    this.queues.forget();
  }

  /** Keys, items, fences and places are numbered by one counter, which never goes back: so no fence ever does. */
  next(): number {
    this.#counter += 1;
    return this.#counter;
  }

  makeKey(queue: QueueRow, name: string): KeyRow {
    return this.keys.add(this.next(), queue.id, name);
  }

  /** Whatever this transaction knows of the queue is void: the caller removes it from the store. */
  dropQueue(queue: QueueRow): void {
    this.keys.dropAll(queue.id);
    this.queues.drop(queue);
    this.stirred.delete(queue.id);
    this.later.delete(queue.id);
    removeWhere(this.opened, (key) => key.queue === queue.id);
    removeWhere(this.ended, (one) => one.queue === queue.id);
    this.deleted.add(queue.name);
  }

  countDelayed(queue: QueueRow, key: KeyRow, change: number): void {
    if (change > 0) this.later.add(queue.id);
    key.delayed += change;
    this.queues.touch(queue).delayed += change;
  }

  /** Counts an item of the key in or out of the line of its level. */
  count(queue: QueueRow, key: KeyRow, level: number, change: number): void {
    key.waiting += change;
    this.queues.touch(queue).waiting[level] = (queue.waiting[level] ?? 0) + change;
  }
}

function removeWhere<T>(list: T[], isOut: (entry: T) => boolean): void {
  const rest = list.filter((entry) => !isOut(entry));
  list.splice(0, list.length, ...rest);
}
