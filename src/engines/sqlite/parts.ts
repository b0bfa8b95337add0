import type { DatabaseSync } from "node:sqlite";
import type { Failure } from "../../domain/failure.ts";
import type { Outcome } from "../../engine/port.ts";
import { assignedId, Items } from "./items.ts";
import type { KeyRow } from "./key-row.ts";
import { Line } from "./line.ts";
import { Statement } from "./rows.ts";
import { type QueueRow, Transaction } from "./transaction.ts";

/** What every step works with: the open transaction, the items, and the line of each key. */
export interface Parts {
  readonly db: DatabaseSync;
  readonly tx: Transaction;
  readonly items: Items;
  readonly line: Line;
  readonly endings: Endings;
}

export function makeParts(db: DatabaseSync): Parts {
  const tx = new Transaction(db);
  const items = new Items(db);
  return { db, tx, items, line: new Line(tx, items), endings: new Endings(db, tx, items) };
}

/** The four ways an item ends (G4). Each removes it, and notes how if it is to be remembered. */
export class Endings {
  readonly #tx: Transaction;
  readonly #items: Items;
  readonly #bury: Statement;

  constructor(db: DatabaseSync, tx: Transaction, items: Items) {
    this.#tx = tx;
    this.#items = items;
    this.#bury = new Statement(
      db,
      "INSERT INTO dead (place, seq, queue, key, level, id, type, body, headers, submitted, keep, attempt, failure, at) " +
        "SELECT ?, seq, ?, ?, level, id, type, body, headers, submitted, keep, ?, ?, ? FROM item WHERE seq = ?",
    );
  }

  /** Done, cancelled or replaced. `attempt` counts those since the item last became the head. */
  end(queue: QueueRow, seq: number, attempt: number, outcome: Omit<Outcome, "at" | "attempt">): void {
    const removed = this.#items.remove(seq);
    if (removed === undefined) throw new Error(`Item ${seq} is not in the store.`);
    if (removed.keep === 0) return;
    this.#items.endReceipt(
      this.#tx,
      queue,
      removed.id ?? assignedId(seq),
      { ...outcome, at: this.#tx.wall, attempt: removed.attempt + attempt },
      this.#tx.wall + removed.keep,
    );
  }

  bury(queue: QueueRow, key: KeyRow, seq: number, attempt: number, failure: Failure): void {
    const item = this.#items.get(seq);
    if (item === undefined) throw new Error(`Item ${seq} is not in the store.`);
    const attempts = item.attempt + attempt;
    this.#bury.run(this.#tx.next(), queue.id, key.name, attempts, JSON.stringify(failure), this.#tx.wall, seq);
    this.#items.remove(seq);
    this.#tx.touch(queue).dead += 1;
    if (item.keep === 0) return;
    const outcome: Outcome = { state: "dead", at: this.#tx.wall, attempt: attempts, failure };
    this.#items.endReceipt(this.#tx, queue, item.id ?? assignedId(seq), outcome, undefined);
  }
}
