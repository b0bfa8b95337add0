import { readAttempts, withAttempts, writeAttempts } from "../../engine/attempts.ts";
import type { Outcome } from "../../engine/port.ts";
import { readFailure } from "../../engine/stored-json.ts";
import { assignedId } from "./assigned-id.ts";
import type { ItemRow } from "./items.ts";
import type { QueueRow } from "./queue-table.ts";
import { body, integer, optionalInteger, optionalText, type Row, text, type Sql } from "./rows.ts";
import type { Transaction } from "./transaction.ts";

export interface ReceiptRow {
  readonly seq: number;
  readonly key: string;
  readonly level: number;
  readonly submitted: number;
  readonly outcome: Outcome | undefined;
}

/** By which items are remembered: that they were accepted (G9), and how they ended (G4). Only for those that ask for it. */
export class Receipts {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(sql: Sql) {
    this.#statements = prepare(sql);
  }

  /** The receipt of an id, unless it has expired. */
  get(queue: QueueRow, id: string, now: number): ReceiptRow | undefined {
    const row = this.#statements.get.get(queue.id, id);
    if (row === undefined) return undefined;
    const expires = optionalInteger(row, 6);
    return expires !== undefined && expires <= now ? undefined : readReceipt(row);
  }

  add(queue: QueueRow, item: Pick<ItemRow, "seq" | "id" | "level" | "submitted">, key: string): void {
    this.#statements.insert.run(queue.id, item.id ?? assignedId(item.seq), item.seq, key, item.level, item.submitted);
  }

  /** Notes how a remembered item ended. `expires` undefined: remembered until somebody says otherwise. */
  end(tx: Transaction, queue: QueueRow, id: string, outcome: Outcome, expires: number | undefined): void {
    tx.ended.push({ queue: queue.id, id });
    this.#statements.end.run(
      outcome.state,
      outcome.at,
      expires ?? null,
      outcome.attempt,
      outcome.result?.type ?? null,
      outcome.result?.body ?? null,
      outcome.failure === undefined ? null : JSON.stringify(outcome.failure),
      outcome.attempts === undefined ? null : writeAttempts(outcome.attempts),
      outcome.resultMissing ?? null,
      queue.id,
      id,
    );
  }

  reopen(queue: QueueRow, id: string): void {
    this.#statements.reopen.run(queue.id, id);
  }

  expire(queue: QueueRow, id: string, expires: number): void {
    this.#statements.expire.run(expires, queue.id, id);
  }

  /** A few at a time, so that forgetting never holds up the work. */
  forgetExpired(now: number, limit: number): number {
    return this.#statements.forgetExpired.change(now, limit);
  }
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
  const resultMissing = optionalText(row, 12);
  return {
    state,
    at: integer(row, 5),
    attempt: integer(row, 7),
    ...(type === undefined ? {} : { result: { type, body: body(row, 9) } }),
    ...(resultMissing === undefined ? {} : { resultMissing }),
    ...(failure === undefined ? {} : { failure: readFailure(failure) }),
    ...withAttempts(readAttempts(optionalText(row, 11))),
  };
}

function prepare(sql: Sql) {
  return {
    get: sql(
      "SELECT seq, key, level, submitted, state, ended, expires, attempt, result_type, result, failure, tried, result_missing FROM receipt WHERE queue = ? AND id = ?",
    ),
    // An expired receipt of the same id may still be there.
    insert: sql("INSERT OR REPLACE INTO receipt (queue, id, seq, key, level, submitted) VALUES (?, ?, ?, ?, ?, ?)"),
    end: sql(
      "UPDATE receipt SET state = ?, ended = ?, expires = ?, attempt = ?, result_type = ?, result = ?, failure = ?, tried = ?, result_missing = ? WHERE queue = ? AND id = ?",
    ),
    reopen: sql(
      "UPDATE receipt SET state = NULL, ended = NULL, expires = NULL, attempt = NULL, failure = NULL, tried = NULL WHERE queue = ? AND id = ?",
    ),
    expire: sql("UPDATE receipt SET expires = ? WHERE queue = ? AND id = ?"),
    forgetExpired: sql(
      "DELETE FROM receipt WHERE (queue, id) IN (SELECT queue, id FROM receipt WHERE expires <= ? ORDER BY expires LIMIT ?)",
    ),
  };
}
