import type { DatabaseSync } from "node:sqlite";
import type { Failure } from "../../domain/failure.ts";
import { addAttempt, type Attempt, attemptOf, readAttempts, writeAttempts } from "../../engine/attempts.ts";
import type { AttemptReport, Outcome } from "../../engine/port.ts";
import { assignedId } from "./assigned-id.ts";
import { Cells } from "./cells.ts";
import { type EndedItem, isRemembered, Items } from "./items.ts";
import { Receipts } from "./receipts.ts";
import type { KeyRow } from "./key-row.ts";
import { Line } from "./line.ts";
import { type Sql, type Statement, statementsOf } from "./rows.ts";
import type { QueueRow } from "./queue-table.ts";
import { Transaction } from "./transaction.ts";

/** What every step works with: the open transaction, the items, and the line of each key. */
export interface Parts {
  readonly db: DatabaseSync;
  readonly sql: Sql;
  readonly tx: Transaction;
  readonly items: Items;
  readonly receipts: Receipts;
  readonly cells: Cells;
  readonly line: Line;
  readonly endings: Endings;
}

export function makeParts(db: DatabaseSync): Parts {
  const sql = statementsOf(db);
  const tx = new Transaction(sql);
  const items = new Items(sql);
  const receipts = new Receipts(sql);
  return {
    db,
    sql,
    tx,
    items,
    receipts,
    cells: new Cells(sql),
    line: new Line(tx, items),
    endings: new Endings(sql, tx, items, receipts),
  };
}

/** The four ways an item ends (G4). Each removes it, and notes how if it is to be remembered. */
export class Endings {
  readonly #tx: Transaction;
  readonly #items: Items;
  readonly #receipts: Receipts;
  readonly #bury: Statement;

  constructor(sql: Sql, tx: Transaction, items: Items, receipts: Receipts) {
    this.#tx = tx;
    this.#items = items;
    this.#receipts = receipts;
    this.#bury = sql(
      "INSERT INTO dead (place, seq, queue, key, level, id, type, body, headers, submitted, keep, attempt, failure, at, tried) " +
        "SELECT ?, seq, ?, ?, level, id, type, body, headers, submitted, keep, ?, ?, ?, ? FROM item WHERE seq = ?",
    );
  }

  /** Done, cancelled or replaced. */
  end(queue: QueueRow, seq: number, outcome: EndOf): void {
    this.#note(queue, seq, this.#items.remove(seq), 0, outcome);
  }

  /** The same for the head of a key, whose latest attempts are counted in the key's row. */
  endHead(queue: QueueRow, key: KeyRow, outcome: EndOf): void {
    const { head, granting } = key;
    if (granting !== undefined) this.#items.discard(head);
    this.#note(queue, head, granting ?? this.#items.remove(head), key.attempt, outcome);
  }

  /** An attempt of the head came to nothing: noted with the item, which stays. */
  note(key: KeyRow, how: (attempt: Attempt) => AttemptReport): void {
    const item = key.granting ?? this.#items.get(key.head);
    // A row that is damaged or gone must not keep a lease from running out.
    if (item === undefined) return;
    const attempt = how({ attempt: item.attempt + key.attempt, at: this.#tx.wall, worker: key.worker ?? "" });
    const tried = writeAttempts(addAttempt(readAttempts(item.tried), attempt));
    if (key.granting !== undefined) key.granting = { ...key.granting, tried };
    this.#items.noteAttempt(key.head, tried, attempt.end === "lost");
  }

  bury(queue: QueueRow, key: KeyRow, failure: Failure): void {
    const seq = key.head;
    const item = this.#items.get(seq);
    if (item === undefined) throw new Error(`Item ${seq} is not in the store.`);
    const attempt = item.attempt + key.attempt;
    const at = this.#tx.wall;
    const last = attemptOf({ type: "dead", failure }, { attempt, at, worker: key.worker ?? "" });
    const tried = addAttempt(readAttempts(item.tried), last);
    const place = this.#tx.next();
    this.#bury.run(place, queue.id, key.name, attempt, JSON.stringify(failure), at, writeAttempts(tried), seq);
    this.#items.discard(seq);
    this.#tx.queues.touch(queue).dead += 1;
    if (!isRemembered(item)) return;
    const outcome: Outcome = { state: "dead", at, attempt, failure, attempts: tried };
    this.#receipts.end(this.#tx, queue, item.id ?? assignedId(seq), outcome, undefined);
  }

  #note(queue: QueueRow, seq: number, item: EndedItem, attempt: number, outcome: EndOf): void {
    if (!isRemembered(item)) return;
    const over: Outcome = { ...outcome, at: this.#tx.wall, attempt: item.attempt + attempt };
    const whole = item.tried === undefined ? over : { ...over, attempts: readAttempts(item.tried) };
    this.#receipts.end(this.#tx, queue, item.id ?? assignedId(seq), whole, this.#tx.wall + item.keep);
  }
}

/** What is known of an ending beside its time. */
export type EndOf = Omit<Outcome, "at" | "attempt">;
