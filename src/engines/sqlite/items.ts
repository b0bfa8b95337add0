import type { DatabaseSync } from "node:sqlite";
import type { Failure } from "../../domain/failure.ts";
import { type Body, JSON_TYPE, type Payload } from "../../domain/payload.ts";
import type { Outcome } from "../../engine/port.ts";
import { assignedId, seqOfAssigned } from "./assigned-id.ts";
import { body, integer, optionalInteger, optionalText, type Row, Statement, text } from "./rows.ts";
import type { QueueRow } from "./queue-table.ts";
import type { Transaction } from "./transaction.ts";

/** An item as it is stored. All but `attempt` and `due` is written once. */
export interface ItemRow {
  readonly seq: number;
  readonly key: number;
  readonly level: number;
  /** The submitter's; undefined for one that the engine gave. */
  readonly id: string | undefined;
  readonly payload: Payload;
  readonly headers: string | undefined;
  readonly submitted: number;
  readonly keep: number;
  /** Attempts before it last became the head of its key. */
  readonly attempt: number;
  /** When it may run again after a failure, by the wall clock; 0 for at once. */
  readonly due: number;
}

export interface GrantedItem {
  readonly id: string | undefined;
  readonly type: string;
  readonly body: Body;
  readonly headers: string | undefined;
  readonly submitted: number;
  readonly keep: number;
  readonly attempt: number;
}

export interface ReceiptRow {
  readonly seq: number;
  readonly key: string;
  readonly level: number;
  readonly submitted: number;
  readonly outcome: Outcome | undefined;
}

/** Items, their links, and the receipts by which they are remembered. */
export class Items {
  readonly #statements: ReturnType<typeof prepare>;
  /** Rows to be deleted, all with one statement at the end: that costs half of deleting them one by one. */
  readonly #discarded = new Set<number>();
  readonly #unlinked = new Set<number>();

  constructor(db: DatabaseSync) {
    this.#statements = prepare(db);
  }

  add(item: ItemRow): void {
    const { seq, key, level, id, payload, headers, submitted, keep } = item;
    this.#statements.insert.run(
      seq,
      key,
      level,
      id ?? null,
      writeType(payload.type),
      payload.body,
      headers ?? null,
      submitted,
      keep,
    );
  }

  get(seq: number): ItemRow | undefined {
    if (this.#discarded.has(seq)) return undefined;
    const row = this.#statements.get.get(seq);
    return row === undefined ? undefined : readItem(row);
  }

  /** What a worker gets to see. */
  forGrant(seq: number): GrantedItem | undefined {
    const row = this.#statements.forGrant.get(seq);
    if (row === undefined) return undefined;
    return {
      id: optionalText(row, 0),
      type: readType(row, 1),
      body: body(row, 2),
      headers: optionalText(row, 3),
      submitted: integer(row, 4),
      keep: integer(row, 5),
      attempt: integer(row, 6),
    };
  }

  /** Only what is needed to make an item the head: undefined if it was taken out of its line. */
  due(seq: number): number | undefined {
    if (this.#discarded.has(seq)) return undefined;
    const row = this.#statements.due.get(seq);
    return row === undefined ? undefined : integer(row, 0);
  }

  setDue(seq: number, due: number): void {
    this.#statements.setDue.run(due, seq);
  }

  addAttempts(seq: number, attempts: number): void {
    this.#statements.addAttempts.run(attempts, seq);
  }

  /** Removes an item about which everything is known. Its links stay: whoever follows them skips what is gone. */
  discard(seq: number): void {
    this.#discarded.add(seq);
  }

  /** Makes the removals visible to queries. */
  flush(): void {
    if (this.#discarded.size > 0) this.#statements.discard.run(JSON.stringify([...this.#discarded]));
    if (this.#unlinked.size > 0) this.#statements.unlink.run(JSON.stringify([...this.#unlinked]));
    this.forget();
  }

  /** After a transaction that failed. */
  forget(): void {
    this.#discarded.clear();
    this.#unlinked.clear();
  }

  remove(
    seq: number,
  ): { readonly id: string | undefined; readonly keep: number; readonly attempt: number } | undefined {
    const row = this.#statements.remove.get(seq);
    if (row === undefined) return undefined;
    return { id: optionalText(row, 0), keep: integer(row, 1), attempt: integer(row, 2) };
  }

  link(seq: number, next: number): void {
    this.#unlinked.delete(seq);
    this.#statements.link.run(seq, next);
  }

  /** Takes the link behind an item away, and says where it led. */
  unlink(seq: number): number | undefined {
    const row = this.#statements.next.get(seq);
    if (row === undefined) return undefined;
    this.#unlinked.add(seq);
    return integer(row, 0);
  }

  addDelayed(seq: number, key: number, due: number, front: boolean): void {
    this.#statements.insertDelayed.run(seq, key, due, Number(front));
  }

  dueDelayed(
    until: number,
    limit: number,
  ): readonly { readonly seq: number; readonly key: number; readonly front: boolean }[] {
    return this.#statements.dueDelayed.all(until, limit).map((row) => ({
      seq: integer(row, 0),
      key: integer(row, 1),
      front: integer(row, 2) === 1,
    }));
  }

  delayedOf(key: number): readonly number[] {
    return this.#statements.delayedOf.all(key).map((row) => integer(row, 0));
  }

  delayedDue(seq: number): number | undefined {
    const row = this.#statements.delayedDue.get(seq);
    return row === undefined ? undefined : integer(row, 0);
  }

  removeDelayed(seq: number): boolean {
    return this.#statements.removeDelayed.change(seq) > 0;
  }

  nextDelayed(): number | undefined {
    return optionalInteger(this.#statements.nextDelayed.get() ?? [null], 0);
  }

  /** The receipt of an id, unless it has expired. */
  receipt(queue: QueueRow, id: string, now: number): ReceiptRow | undefined {
    const row = this.#statements.receipt.get(queue.id, id);
    if (row === undefined) return undefined;
    const expires = optionalInteger(row, 6);
    return expires !== undefined && expires <= now ? undefined : readReceipt(row);
  }

  addReceipt(queue: QueueRow, item: ItemRow, key: string): void {
    this.#statements.insertReceipt.run(
      queue.id,
      item.id ?? assignedId(item.seq),
      item.seq,
      key,
      item.level,
      item.submitted,
    );
  }

  /** Notes how a remembered item ended. `expires` undefined: remembered until somebody says otherwise. */
  endReceipt(tx: Transaction, queue: QueueRow, id: string, outcome: Outcome, expires: number | undefined): void {
    tx.ended.push({ queue: queue.id, id });
    tx.news = true;
    this.#statements.endReceipt.run(
      outcome.state,
      outcome.at,
      expires ?? null,
      outcome.attempt,
      outcome.result?.type ?? null,
      outcome.result?.body ?? null,
      outcome.failure === undefined ? null : JSON.stringify(outcome.failure),
      queue.id,
      id,
    );
  }

  reopenReceipt(queue: QueueRow, id: string): void {
    this.#statements.reopenReceipt.run(queue.id, id);
  }

  expireReceipt(queue: QueueRow, id: string, expires: number): void {
    this.#statements.expireReceipt.run(expires, queue.id, id);
  }

  /** A few at a time, so that forgetting never holds up the work. */
  forgetExpired(now: number, limit: number): number {
    return this.#statements.forgetExpired.change(now, limit);
  }

  /** Where an item with this id is, if it has not ended. */
  locate(queue: QueueRow, id: string, now: number): number | undefined {
    return this.receipt(queue, id, now)?.seq ?? seqOfAssigned(id);
  }
}

function readItem(row: Row): ItemRow {
  return {
    seq: integer(row, 0),
    key: integer(row, 1),
    level: integer(row, 2),
    id: optionalText(row, 3),
    payload: { type: readType(row, 4), body: body(row, 5) },
    headers: optionalText(row, 6),
    submitted: integer(row, 7),
    keep: integer(row, 8),
    attempt: integer(row, 9),
    due: integer(row, 10),
  };
}

/** Nearly everything is JSON: that is not written out. */
export function writeType(type: string): string | null {
  return type === JSON_TYPE ? null : type;
}

export function readType(row: Row, index: number): string {
  return optionalText(row, index) ?? JSON_TYPE;
}

function readReceipt(row: Row): ReceiptRow {
  const state = optionalText(row, 4);
  return {
    seq: integer(row, 0),
    key: text(row, 1),
    level: integer(row, 2),
    submitted: integer(row, 3),
    outcome: state === undefined ? undefined : readOutcome(state, row),
  };
}

function readOutcome(state: string, row: Row): Outcome {
  if (state !== "done" && state !== "dead" && state !== "cancelled" && state !== "replaced") {
    throw new TypeError(`The store has an unknown outcome: ${state}.`);
  }
  const type = optionalText(row, 8);
  const failure = optionalText(row, 10);
  return {
    state,
    at: integer(row, 5),
    attempt: integer(row, 7),
    ...(type === undefined ? {} : { result: { type, body: body(row, 9) } }),
    ...(failure === undefined ? {} : { failure: readFailure(failure) }),
  };
}

export function readFailure(json: string): Failure {
  const value: unknown = JSON.parse(json);
  if (isFailure(value)) return value;
  throw new TypeError("The store has no failure where one belongs.");
}

function isFailure(value: unknown): value is Failure {
  return typeof value === "object" && value !== null && "message" in value && typeof value.message === "string";
}

function prepare(db: DatabaseSync) {
  return {
    insert: new Statement(
      db,
      "INSERT INTO item (seq, key, level, id, type, body, headers, submitted, keep) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    get: new Statement(
      db,
      "SELECT seq, key, level, id, type, body, headers, submitted, keep, attempt, due FROM item WHERE seq = ?",
    ),
    forGrant: new Statement(db, "SELECT id, type, body, headers, submitted, keep, attempt FROM item WHERE seq = ?"),
    discard: new Statement(db, "DELETE FROM item WHERE seq IN (SELECT value FROM json_each(?))"),
    due: new Statement(db, "SELECT due FROM item WHERE seq = ?"),
    setDue: new Statement(db, "UPDATE item SET due = ? WHERE seq = ?"),
    addAttempts: new Statement(db, "UPDATE item SET attempt = attempt + ? WHERE seq = ?"),
    remove: new Statement(db, "DELETE FROM item WHERE seq = ? RETURNING id, keep, attempt"),
    link: new Statement(db, "INSERT OR REPLACE INTO link (seq, next) VALUES (?, ?)"),
    next: new Statement(db, "SELECT next FROM link WHERE seq = ?"),
    unlink: new Statement(db, "DELETE FROM link WHERE seq IN (SELECT value FROM json_each(?))"),
    insertDelayed: new Statement(db, "INSERT INTO delayed (seq, key, due, front) VALUES (?, ?, ?, ?)"),
    dueDelayed: new Statement(db, "SELECT seq, key, front FROM delayed WHERE due <= ? ORDER BY due, seq LIMIT ?"),
    delayedOf: new Statement(db, "SELECT seq FROM delayed WHERE key = ? ORDER BY seq"),
    delayedDue: new Statement(db, "SELECT due FROM delayed WHERE seq = ?"),
    removeDelayed: new Statement(db, "DELETE FROM delayed WHERE seq = ?"),
    nextDelayed: new Statement(db, "SELECT min(due) FROM delayed"),
    receipt: new Statement(
      db,
      "SELECT seq, key, level, submitted, state, ended, expires, attempt, result_type, result, failure FROM receipt WHERE queue = ? AND id = ?",
    ),
    // An expired receipt of the same id may still be there.
    insertReceipt: new Statement(
      db,
      "INSERT OR REPLACE INTO receipt (queue, id, seq, key, level, submitted) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    endReceipt: new Statement(
      db,
      "UPDATE receipt SET state = ?, ended = ?, expires = ?, attempt = ?, result_type = ?, result = ?, failure = ? WHERE queue = ? AND id = ?",
    ),
    reopenReceipt: new Statement(
      db,
      "UPDATE receipt SET state = NULL, ended = NULL, expires = NULL, attempt = NULL, failure = NULL WHERE queue = ? AND id = ?",
    ),
    expireReceipt: new Statement(db, "UPDATE receipt SET expires = ? WHERE queue = ? AND id = ?"),
    forgetExpired: new Statement(
      db,
      "DELETE FROM receipt WHERE (queue, id) IN (SELECT queue, id FROM receipt WHERE expires <= ? ORDER BY expires LIMIT ?)",
    ),
  };
}
