import type { DatabaseSync } from "node:sqlite";
import type { Failure } from "../../domain/failure.ts";
import type { Outcome } from "../../engine/port.ts";
import { assignedId } from "./assigned-id.ts";
import { Cells } from "./cells.ts";
import { isRemembered, Items } from "./items.ts";
import { Receipts } from "./receipts.ts";
import type { KeyRow } from "./key-row.ts";
import { Line } from "./line.ts";
import { Statement } from "./rows.ts";
import type { QueueRow } from "./queue-table.ts";
import { Transaction } from "./transaction.ts";

/** What every step works with: the open transaction, the items, and the line of each key. */
export interface Parts {
  readonly db: DatabaseSync;
  readonly tx: Transaction;
  readonly items: Items;
  readonly receipts: Receipts;
  readonly cells: Cells;
  readonly line: Line;
  readonly endings: Endings;
}

export function makeParts(db: DatabaseSync): Parts {
  const tx = new Transaction(db);
  const items = new Items(db);
  const receipts = new Receipts(db);
  return {
    db,
    tx,
    items,
    receipts,
    cells: new Cells(db),
    line: new Line(tx, items),
    endings: new Endings(db, tx, items, receipts),
  };
}

/** The four ways an item ends (G4). Each removes it, and notes how if it is to be remembered. */
export class Endings {
  readonly #tx: Transaction;
  readonly #items: Items;
  readonly #receipts: Receipts;
  readonly #bury: Statement;

  constructor(db: DatabaseSync, tx: Transaction, items: Items, receipts: Receipts) {
    this.#tx = tx;
    this.#items = items;
    this.#receipts = receipts;
    this.#bury = new Statement(
      db,
      "INSERT INTO dead (place, seq, queue, key, level, id, type, body, headers, submitted, keep, attempt, failure, at) " +
        "SELECT ?, seq, ?, ?, level, id, type, body, headers, submitted, keep, ?, ?, ? FROM item WHERE seq = ?",
    );
  }

  /** Done, cancelled or replaced. */
  end(queue: QueueRow, seq: number, outcome: EndOf): void {
    const removed = this.#items.remove(seq);
    if (removed === undefined) throw new Error(`Item ${seq} is not in the store.`);
    this.#note(queue, seq, removed, 0, outcome);
  }

  /** The same for the head of a key, whose latest attempts are counted in the key's row. */
  endHead(queue: QueueRow, key: KeyRow, outcome: EndOf): void {
    const { head, granting } = key;
    if (granting !== undefined) this.#items.discard(head);
    const removed = granting ?? this.#items.remove(head);
    if (removed === undefined) throw new Error(`Item ${head} is not in the store.`);
    this.#note(queue, head, removed, key.attempt, outcome);
  }

  bury(queue: QueueRow, key: KeyRow, failure: Failure): void {
    const seq = key.head;
    const item = this.#items.get(seq);
    if (item === undefined) throw new Error(`Item ${seq} is not in the store.`);
    const attempts = item.attempt + key.attempt;
    this.#bury.run(this.#tx.next(), queue.id, key.name, attempts, JSON.stringify(failure), this.#tx.wall, seq);
    this.#items.discard(seq);
    this.#tx.queues.touch(queue).dead += 1;
    if (!isRemembered(item)) return;
    const outcome: Outcome = { state: "dead", at: this.#tx.wall, attempt: attempts, failure };
    this.#receipts.end(this.#tx, queue, item.id ?? assignedId(seq), outcome, undefined);
  }

  #note(
    queue: QueueRow,
    seq: number,
    item: { readonly id: string | undefined; readonly keep: number; readonly attempt: number },
    attempt: number,
    outcome: EndOf,
  ): void {
    if (!isRemembered(item)) return;
    const whole: Outcome = { ...outcome, at: this.#tx.wall, attempt: item.attempt + attempt };
    this.#receipts.end(this.#tx, queue, item.id ?? assignedId(seq), whole, this.#tx.wall + item.keep);
  }
}

/** What is known of an ending beside its time. */
type EndOf = Omit<Outcome, "at" | "attempt">;
