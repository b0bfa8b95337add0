import { DEFAULT_LEVELS } from "../../domain/level.ts";
import type { CancelResult, Outcome, PauseRequest, QueueDeclaration, ReviveRequest } from "../../engine/port.ts";
import { assignedId, seqOfAssigned } from "./assigned-id.ts";
import { isRemembered, type ItemRow, readType } from "./items.ts";
import { type KeyRow, LEASED, READY, removeHead } from "./key-row.ts";
import type { Replies, Requests } from "./messages.ts";
import type { Parts } from "./parts.ts";
import type { ReceiptRow } from "./receipts.ts";
import { body, integer, optionalText, type Row, text, type Sql } from "./rows.ts";
import { type QueueRow, texts } from "./queue-table.ts";

const REVIVED_AT_A_TIME = 500;

/** What operators do: declare, cancel, pause, and bring dead letters back. */
export class Operations {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(sql: Sql) {
    this.#statements = prepare(sql);
  }

  /** The levels that the store has, whether or not they are those that were asked for: the caller compares. */
  declare(request: Requests["declare"]): QueueDeclaration {
    const levels = request.levels ?? DEFAULT_LEVELS;
    this.#statements.declare.run(request.queue, JSON.stringify(levels), JSON.stringify(levels.map(() => 0)));
    return this.declaration(request.queue) ?? { levels };
  }

  /** Without the write lock. */
  declaration(queue: string): QueueDeclaration | undefined {
    const row = this.#statements.levels.get(queue);
    return row === undefined ? undefined : { levels: texts(text(row, 0)) };
  }

  cancel(parts: Parts, request: Requests["cancel"]): CancelResult {
    const { tx, items, line, endings } = parts;
    const queue = tx.queues.find(request.queue);
    const { outcome, item, key } = locate(parts, queue, request.id, tx.wall);
    if (outcome !== undefined) return "ended";
    if (item === undefined || key === undefined)
      return this.findDead(queue, request.id) === undefined ? "missing" : "ended";
    const { seq } = item;
    const isHead = key.head === seq;
    if (isHead && key.state === LEASED && !key.held) {
      key.cancel = true;
      tx.keys.save(key);
      return "requested";
    }
    if (line.behind(key).some((covered) => covered.seq === seq)) {
      key.marked = [...key.marked.filter((marked) => marked !== seq), seq];
      tx.keys.save(key);
      return "requested";
    }
    if (isHead) endings.endHead(queue, key, { state: "cancelled" });
    else endings.end(queue, seq, { state: "cancelled" });
    if (items.removeDelayed(seq)) {
      tx.countDelayed(queue, key, -1);
      tx.keys.save(key);
      return "cancelled";
    }
    tx.count(queue, key, item.level, -1);
    tx.keys.save(key);
    if (!isHead) key.gaps = true;
    else {
      removeHead(key);
      if (key.state !== LEASED) line.promote(key);
    }
    return "cancelled";
  }

  pause(parts: Parts, request: PauseRequest): undefined {
    const { tx } = parts;
    const queue = tx.queues.find(request.queue);
    // Whoever waits for work looks again.
    tx.stirred.add(queue.id);
    if (request.key === undefined) {
      tx.queues.touch(queue).paused = request.paused;
      return undefined;
    }
    const key = tx.keys.find(queue.id, request.key) ?? (request.paused ? tx.makeKey(queue, request.key) : undefined);
    if (key === undefined || key.paused === request.paused) return undefined;
    key.paused = request.paused;
    if (!key.paused && key.state === READY) key.readyAt = tx.wall;
    tx.keys.save(key);
    return undefined;
  }

  revive(parts: Parts, request: Requests["revive"]): Replies["revive"] {
    const queue = parts.tx.queues.find(request.queue);
    // An item that comes back has the number it had.
    parts.items.flush();
    // Those that die from now on have a later place.
    const upTo = request.upTo ?? parts.tx.next();
    const rows =
      request.ids === undefined ? this.#statements.deadOf.all(queue.id, upTo) : this.#named(queue, request.ids);
    for (const row of rows) this.#reviveOne(parts, queue, row, request.action);
    return { revived: rows.length, upTo, more: request.ids === undefined && rows.length === REVIVED_AT_A_TIME };
  }

  #named(queue: QueueRow, ids: readonly string[]): readonly Row[] {
    const rows = new Map<number, Row>();
    for (const id of ids) {
      const row = this.findDead(queue, id);
      if (row !== undefined) rows.set(integer(row, 0), row);
    }
    return [...rows.values()];
  }

  findDead(queue: QueueRow, id: string): Row | undefined {
    const seq = seqOfAssigned(id);
    if (seq === undefined) return this.#statements.deadById.get(queue.id, id);
    const row = this.#statements.deadBySeq.get(seq, queue.id);
    return row !== undefined && optionalText(row, 4) === undefined ? row : undefined;
  }

  #reviveOne(parts: Parts, queue: QueueRow, row: Row, action: ReviveRequest["action"]): void {
    const { tx, items, receipts, line } = parts;
    const seq = integer(row, 1);
    const keep = integer(row, 9);
    const id = optionalText(row, 4);
    const remembered = id ?? assignedId(seq);
    this.#statements.removeDead.run(integer(row, 0));
    tx.queues.touch(queue).dead -= 1;
    if (action === "drop") {
      if (isRemembered({ id, keep })) receipts.expire(queue, remembered, tx.wall + keep);
      return;
    }
    const keyName = text(row, 2);
    const level = integer(row, 3);
    const key = tx.keys.find(queue.id, keyName) ?? tx.makeKey(queue, keyName);
    items.add({
      seq,
      key: key.id,
      level,
      id,
      type: readType(row, 5),
      body: body(row, 6),
      headers: optionalText(row, 7),
      submitted: integer(row, 8),
      keep,
    });
    // What was tried before is still worth knowing: the attempts count anew.
    const tried = optionalText(row, 10);
    if (tried !== undefined) items.noteAttempt(seq, tried, false);
    if (isRemembered({ id, keep })) receipts.reopen(queue, remembered);
    line.arrive(queue, key, seq, level, false);
  }
}

interface Located {
  readonly receipt?: ReceiptRow | undefined;
  readonly outcome?: Outcome | undefined;
  readonly item?: ItemRow;
  readonly key?: KeyRow;
}

/** What is known of an id: how its item ended, or the item and its key. Nothing: at most it is a dead letter. */
export function locate({ tx, items, receipts }: Parts, queue: QueueRow, id: string, wall: number): Located {
  const receipt = receipts.get(queue, id, wall);
  const outcome = receipt?.outcome;
  const seq = receipt?.seq ?? seqOfAssigned(id);
  const item = seq === undefined || outcome !== undefined ? undefined : items.get(seq);
  const key = item === undefined ? undefined : tx.keys.get(item.key);
  // An item that has an id of its own does not answer to the one it would have been given.
  const isIt = item !== undefined && key?.queue === queue.id && (item.id ?? assignedId(item.seq)) === id;
  return isIt ? { receipt, outcome, item, key } : { receipt, outcome };
}

const DEAD = "SELECT place, seq, key, level, id, type, body, headers, submitted, keep, tried FROM dead WHERE";

function prepare(sql: Sql) {
  return {
    declare: sql("INSERT INTO queue (name, levels, waiting) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"),
    levels: sql("SELECT levels FROM queue WHERE name = ?"),
    deadOf: sql(`${DEAD} queue = ? AND place <= ? ORDER BY place LIMIT ${REVIVED_AT_A_TIME}`),
    deadBySeq: sql(`${DEAD} seq = ? AND queue = ?`),
    deadById: sql(`${DEAD} queue = ? AND id = ?`),
    removeDead: sql("DELETE FROM dead WHERE place = ?"),
  };
}
