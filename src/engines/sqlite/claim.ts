import { LevelChooser } from "../../domain/level.ts";
import { expire } from "./due.ts";
import { assignedId } from "./assigned-id.ts";
import type { ItemRow } from "./items.ts";
import { type KeyRow, LEASED, READY } from "./key-row.ts";
import type { GrantTuple, ItemTuple, Requests } from "./messages.ts";
import type { Parts } from "./parts.ts";
import { integer, type Row, type Statement, type Sql } from "./rows.ts";
import type { QueueRow } from "./queue-table.ts";
import type { Transaction } from "./transaction.ts";

/** Hands out ready keys. */
export class Claims {
  readonly #ready: Statement;
  readonly #anyReady: Statement;
  readonly #choosers = new Map<number, LevelChooser>();

  constructor(sql: Sql) {
    this.#ready = sql(
      "SELECT id, ready_at FROM key WHERE queue = ? AND level = ? AND state = 1 AND paused = 0 AND wanted = 0 ORDER BY place LIMIT ?",
    );
    this.#anyReady = sql(
      "SELECT 1 FROM key JOIN queue ON queue.id = key.queue WHERE queue.name = ? AND queue.paused = 0 AND key.state = 1 AND key.paused = 0 AND key.wanted = 0 LIMIT 1",
    );
  }

  /** Without the write lock: is it worth taking? */
  anyReady(queue: string): boolean {
    return this.#anyReady.get(queue) !== undefined;
  }

  claim(parts: Parts, request: Requests["claim"]): readonly GrantTuple[] {
    const { tx } = parts;
    const queue = tx.queues.find(request.queue);
    if (queue.paused) return [];
    const grants: GrantTuple[] = [];
    tx.keys.flush();
    const lines = this.#readyLines(queue, request.max);
    while (grants.length < request.max) {
      const level = this.#chooser(queue).choose(waitedMs(lines, tx), request.patienceMs);
      const line = level === undefined ? undefined : lines[level];
      const row = line?.shift();
      if (level === undefined || line === undefined || row === undefined) break;
      grants.push(this.#grant(parts, queue, readyKey(tx, row), request));
      // Only the first of a less urgent line was read ahead of its turn.
      if (line.length === 0 && grants.length < request.max) {
        tx.keys.flush();
        for (const ready of this.#ready.all(queue.id, level, request.max - grants.length)) line.push(ready);
      }
    }
    return grants;
  }

  /** The ready keys of each level, as many as may be needed; of the levels after that, one, to see how long it waits. */
  #readyLines(queue: QueueRow, max: number): Row[][] {
    let needed = max;
    return queue.levels.map((_, level) => {
      const rows = [...this.#ready.all(queue.id, level, Math.max(1, needed))];
      needed -= rows.length;
      return rows;
    });
  }

  #grant(parts: Parts, queue: QueueRow, key: KeyRow, request: Requests["claim"]): GrantTuple {
    const { tx, items, line } = parts;
    const item = items.get(key.head);
    if (item === undefined) throw new Error(`Key ${key.id} is ready without an item.`);
    key.granting = item;
    lease(tx, key, request.worker, request.leaseMs);
    const { items: most = 1 } = request;
    const mayLead = most > 1 && item.attempt + key.attempt === 0 && key.alone === 0;
    const behind = mayLead ? line.cover(key, most - 1) : [];
    key.attempt += 1;
    queue.running += 1;
    tx.count(queue, key, key.level, -1);
    tx.keys.save(key);
    const attempt = item.attempt + key.attempt;
    const more = behind.length === 0 ? undefined : behind.map(itemTuple);
    return [key.id, key.name, key.fence, key.level, attempt, item.losses, more, ...itemTuple(item)];
  }

  #chooser(queue: QueueRow): LevelChooser {
    let chooser = this.#choosers.get(queue.id);
    if (chooser === undefined) this.#choosers.set(queue.id, (chooser = new LevelChooser()));
    return chooser;
  }
}

/** Whether a worker may have it. */
export function isOpen(key: KeyRow): boolean {
  return key.state === READY && !key.paused && !key.wanted;
}

/** A lease without an item. Its deadline may have passed without anybody having noticed yet. */
export function hold(
  parts: Parts,
  request: Requests["hold"],
): { readonly keyId: number; readonly fence: number } | undefined {
  const { tx } = parts;
  const queue = tx.queues.find(request.queue);
  let key = tx.keys.find(queue.id, request.key);
  if (key?.state === LEASED) {
    if (key.at > tx.monotonic) return undefined;
    expire(parts, key);
  }
  key ??= tx.makeKey(queue, request.key);
  // Others may wait to hold it too, and say so again when they hear of this.
  if (key.wanted) tx.stirred.add(queue.id);
  key.wanted = false;
  lease(tx, key, request.worker, request.leaseMs);
  key.held = true;
  tx.keys.save(key);
  return { keyId: key.id, fence: key.fence };
}

/** Says that somebody waits to hold the key, so that it is not handed from one worker to the next for ever. */
export function want({ tx }: Parts, request: Requests["hold"]): void {
  const key = tx.keys.find(tx.queues.find(request.queue).id, request.key);
  if (key?.state !== LEASED || key.wanted) return;
  key.wanted = true;
  tx.keys.save(key);
}

/** The one who waited gave up. Others who wait for the same key say so again when they hear of it. */
export function wantNoMore({ tx }: Parts, request: Requests["hold"]): void {
  const key = tx.keys.find(tx.queues.find(request.queue).id, request.key);
  if (key?.wanted !== true) return;
  key.wanted = false;
  tx.keys.save(key);
  tx.stirred.add(key.queue);
  if (key.state === READY) tx.opened.push(key);
}

/** Without the write lock: could the hold be had now, or must it be said again that somebody waits for it? */
export function isWorthHolding({ tx }: Parts, request: Requests["hold"], monotonic: number): boolean {
  const key = tx.keys.find(tx.queues.find(request.queue).id, request.key);
  return key?.state !== LEASED || key.at <= monotonic || !key.wanted;
}

function lease(tx: Transaction, key: KeyRow, worker: string, leaseMs: number): void {
  key.state = LEASED;
  key.fence = tx.next();
  key.granted = tx.monotonic;
  key.at = tx.monotonic + leaseMs;
  key.worker = worker;
  key.since = tx.wall;
  key.progress = undefined;
  // Of the lease before: it asked for the end of an item that is gone.
  key.cancel = false;
}

function itemTuple({ seq, id, type, body, headers, submitted }: ItemRow): ItemTuple {
  return [id ?? assignedId(seq), type, body, headers, submitted];
}

function readyKey(tx: Transaction, row: Row): KeyRow {
  const key = tx.keys.get(integer(row, 0));
  if (key === undefined) throw new Error("A ready key has no row.");
  return key;
}

function waitedMs(lines: readonly (readonly Row[])[], tx: Transaction): (number | undefined)[] {
  return lines.map(([first]) => (first === undefined ? undefined : tx.wall - integer(first, 1)));
}
