import { LEASED } from "./key-row.ts";
import type { Replies, Requests } from "./messages.ts";
import type { Parts } from "./parts.ts";
import { integer, type Statement, text, type Sql } from "./rows.ts";

const KEYS = "SELECT id FROM key WHERE queue = ?";

/**
 * Deletes a queue in one transaction. To find the items of its keys is to look through all items of the store, which is done only where there
 * are some.
 */
export class QueueDeletion {
  readonly #leased: Statement;
  readonly #items: readonly Statement[];
  readonly #rest: readonly Statement[];

  constructor(sql: Sql) {
    this.#leased = sql(`SELECT name, fence FROM key WHERE queue = ? AND state = ${LEASED}`);
    this.#items = [
      `DELETE FROM link WHERE seq IN (SELECT seq FROM item WHERE key IN (${KEYS}))`,
      `DELETE FROM delayed WHERE key IN (${KEYS})`,
      `DELETE FROM item WHERE key IN (${KEYS})`,
    ].map((statement) => sql(statement));
    this.#rest = [
      ...["key", "receipt", "dead"].map((table) => sql(`DELETE FROM ${table} WHERE queue = ?`)),
      sql("DELETE FROM queue WHERE id = ?"),
    ];
  }

  run({ tx, items }: Parts, { queue: name, force }: Requests["deleteQueue"]): Replies["deleteQueue"] {
    if (!tx.queues.has(name)) return "missing";
    const queue = tx.queues.find(name);
    items.flush();
    tx.keys.flush();
    const leased = this.#leased.all(queue.id);
    const waiting = queue.waiting.reduce((sum, count) => sum + count, queue.delayed);
    if (!force && waiting + leased.length + queue.dead > 0) return { waiting, leased: leased.length, dead: queue.dead };
    if (waiting + leased.length > 0) for (const statement of this.#items) statement.run(queue.id);
    for (const statement of this.#rest) statement.run(queue.id);
    for (const row of leased) tx.lost.push({ queue: name, key: text(row, 0), fence: integer(row, 1) });
    tx.dropQueue(queue);
    return "deleted";
  }
}
