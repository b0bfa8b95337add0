import type { DatabaseSync } from "node:sqlite";
import { IDLE, KEY_COLUMNS, type KeyRow, newKey, readKey, writeLanes } from "./key-row.ts";
import { integer, type Row, Statement, text } from "./rows.ts";

/** What the steps of one transaction share: the time, the counter, the rows of keys and queues they touched. */
export interface QueueRow {
  readonly id: number;
  readonly name: string;
  readonly levels: readonly string[];
  paused: boolean;
  /** Per level. */
  readonly waiting: number[];
  delayed: number;
  running: number;
  dead: number;
}

export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

/** How much of a key's row must be written back. Rows that only got a longer line leave the indexes alone. */
const CLEAN = 0;
const LENGTH = 1;
const WHOLE = 2;

interface CachedKey {
  readonly row: KeyRow;
  stored: boolean;
  dirty: number;
}

export class Transaction {
  wall = 0;
  monotonic = 0;
  /** Keys that became ready and were not taken: somebody may be asleep who could. */
  untaken = 0;
  /** Something that a sleeper in another process should look at: an outcome, a delay, a queue that goes on. */
  news = false;
  /** `queue/id` of remembered items that ended. */
  readonly ended: { readonly queue: number; readonly id: string }[] = [];
  /** Queues in which a key became ready. */
  readonly stirred: Set<number> = new Set();
  #counter = 0;
  #counterRead = 0;
  readonly #queues = new Map<string, QueueRow>();
  readonly #queuesById = new Map<number, QueueRow>();
  readonly #dirtyQueues = new Set<QueueRow>();
  readonly #keysByName = new Map<string, CachedKey>();
  readonly #keysById = new Map<number, CachedKey>();
  readonly #dirtyKeys = new Set<CachedKey>();
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: DatabaseSync) {
    this.#statements = prepare(db);
  }

  begin(moment: Moment): void {
    // Whole milliseconds, rounded so that a lease never looks shorter to its holder than it is in the store.
    this.wall = Math.floor(moment.wall);
    this.monotonic = Math.floor(moment.monotonic);
    this.untaken = 0;
    this.news = false;
    this.ended.length = 0;
    this.stirred.clear();
    this.#queues.clear();
    this.#queuesById.clear();
    this.#dirtyQueues.clear();
    this.#forgetKeys();
    this.#counter = integer(this.#statements.counter.get() ?? [], 0);
    this.#counterRead = this.#counter;
  }

  /** Writes back what is still only in memory. The caller commits. */
  finish(): void {
    this.flush();
    for (const queue of this.#dirtyQueues) {
      this.#statements.saveQueue.run(
        Number(queue.paused),
        JSON.stringify(queue.waiting),
        queue.delayed,
        queue.running,
        queue.dead,
        queue.id,
      );
    }
    if (this.#counter !== this.#counterRead) this.#statements.saveCounter.run(this.#counter);
  }

  /** Keys, items, fences and places are numbered by one counter, which never goes back: so no fence ever does. */
  next(): number {
    this.#counter += 1;
    return this.#counter;
  }

  queue(name: string): QueueRow {
    const known = this.#queues.get(name) ?? this.#loadQueue(this.#statements.queueByName.get(name));
    if (known === undefined) throw new Error(`Queue ${name} was not declared.`);
    return known;
  }

  queueById(id: number): QueueRow {
    const known = this.#queuesById.get(id) ?? this.#loadQueue(this.#statements.queueById.get(id));
    if (known === undefined) throw new Error(`Queue ${id} is not in the store.`);
    return known;
  }

  /** The queue, about to be changed. */
  touch(queue: QueueRow): QueueRow {
    this.#dirtyQueues.add(queue);
    return queue;
  }

  keyByName(queue: QueueRow, name: string): KeyRow | undefined {
    const cached = this.#keysByName.get(`${queue.id} ${name}`);
    if (cached !== undefined) return cached.row;
    const found = this.#statements.keyByName.get(queue.id, name);
    return found === undefined ? undefined : this.#cache(readKey(found), true).row;
  }

  keyById(id: number): KeyRow | undefined {
    const cached = this.#keysById.get(id);
    if (cached !== undefined) return cached.row;
    const found = this.#statements.keyById.get(id);
    return found === undefined ? undefined : this.#cache(readKey(found), true).row;
  }

  /** A row that came out of a query of its own. */
  keyFromRow(row: Row): KeyRow {
    return this.#keysById.get(integer(row, 0))?.row ?? this.#cache(readKey(row), true).row;
  }

  makeKey(queue: QueueRow, name: string): KeyRow {
    return this.#cache(newKey(this.next(), queue.id, name), false).row;
  }

  /** The row was changed in any way. */
  save(key: KeyRow): void {
    this.#mark(key, WHOLE);
  }

  /** Only counts and lanes were changed. */
  saveLength(key: KeyRow): void {
    this.#mark(key, LENGTH);
  }

  /** Makes the rows visible to queries. */
  flush(): void {
    for (const cached of this.#dirtyKeys) this.#write(cached);
    this.#dirtyKeys.clear();
  }

  #mark(key: KeyRow, dirty: number): void {
    const cached = this.#keysById.get(key.id);
    if (cached === undefined) throw new Error(`Key ${key.id} is not part of this transaction.`);
    if (cached.dirty < dirty) cached.dirty = dirty;
    this.#dirtyKeys.add(cached);
  }

  #write(cached: CachedKey): void {
    const { row, stored, dirty } = cached;
    cached.dirty = CLEAN;
    if (row.state === IDLE && !row.paused && row.delayed === 0) {
      if (stored) this.#statements.deleteKey.run(row.id);
      // Forgotten here too: the next arrival makes a new row with a new id.
      this.#keysById.delete(row.id);
      this.#keysByName.delete(`${row.queue} ${row.name}`);
      return;
    }
    const lanes = writeLanes(row.lanes);
    if (!stored) {
      this.#statements.insertKey.run(
        row.id, row.queue, row.name, row.state, Number(row.paused), row.head, row.level, row.place, row.readyAt, row.attempt,
        row.at, row.granted, row.fence, Number(row.held), Number(row.cancel), row.since, row.worker ?? null, row.progress ?? null,
        row.waiting, row.delayed, lanes,
      );
      cached.stored = true;
    } else if (dirty === LENGTH) {
      this.#statements.saveLength.run(row.waiting, row.delayed, lanes, row.id);
    } else {
      this.#statements.saveKey.run(
        row.state, Number(row.paused), row.head, row.level, row.place, row.readyAt, row.attempt, row.at, row.granted, row.fence,
        Number(row.held), Number(row.cancel), row.since, row.worker ?? null, row.progress ?? null, row.waiting, row.delayed, lanes, row.id,
      );
    }
  }

  #cache(row: KeyRow, stored: boolean): CachedKey {
    const cached = { row, stored, dirty: CLEAN };
    this.#keysById.set(row.id, cached);
    this.#keysByName.set(`${row.queue} ${row.name}`, cached);
    return cached;
  }

  #forgetKeys(): void {
    this.#keysById.clear();
    this.#keysByName.clear();
    this.#dirtyKeys.clear();
  }

  #loadQueue(row: Row | undefined): QueueRow | undefined {
    if (row === undefined) return undefined;
    const queue: QueueRow = {
      id: integer(row, 0),
      name: text(row, 1),
      levels: texts(text(row, 2)),
      paused: integer(row, 3) === 1,
      waiting: numbers(text(row, 4)),
      delayed: integer(row, 5),
      running: integer(row, 6),
      dead: integer(row, 7),
    };
    this.#queues.set(queue.name, queue);
    this.#queuesById.set(queue.id, queue);
    return queue;
  }
}

function prepare(db: DatabaseSync) {
  const queueColumns = "id, name, levels, paused, waiting, delayed, running, dead";
  return {
    counter: new Statement(db, "SELECT value FROM store WHERE name = 'counter'"),
    saveCounter: new Statement(db, "UPDATE store SET value = ? WHERE name = 'counter'"),
    queueByName: new Statement(db, `SELECT ${queueColumns} FROM queue WHERE name = ?`),
    queueById: new Statement(db, `SELECT ${queueColumns} FROM queue WHERE id = ?`),
    saveQueue: new Statement(db, "UPDATE queue SET paused = ?, waiting = ?, delayed = ?, running = ?, dead = ? WHERE id = ?"),
    keyByName: new Statement(db, `SELECT ${KEY_COLUMNS} FROM key WHERE queue = ? AND name = ?`),
    keyById: new Statement(db, `SELECT ${KEY_COLUMNS} FROM key WHERE id = ?`),
    insertKey: new Statement(db, `INSERT INTO key (${KEY_COLUMNS}) VALUES (${KEY_COLUMNS.replace(/\w+/g, "?")})`),
    saveLength: new Statement(db, "UPDATE key SET waiting = ?, delayed = ?, lanes = ? WHERE id = ?"),
    saveKey: new Statement(
      db,
      "UPDATE key SET state = ?, paused = ?, head = ?, level = ?, place = ?, ready_at = ?, attempt = ?, at = ?, granted = ?, fence = ?, " +
        "held = ?, cancel = ?, since = ?, worker = ?, progress = ?, waiting = ?, delayed = ?, lanes = ? WHERE id = ?",
    ),
    deleteKey: new Statement(db, "DELETE FROM key WHERE id = ?"),
  };
}

function texts(json: string): readonly string[] {
  const value: unknown = JSON.parse(json);
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  throw new TypeError("The store has no list of names where one belongs.");
}

function numbers(json: string): number[] {
  const value: unknown = JSON.parse(json);
  if (Array.isArray(value) && value.every((one) => typeof one === "number")) return value;
  throw new TypeError("The store has no list of counts where one belongs.");
}
