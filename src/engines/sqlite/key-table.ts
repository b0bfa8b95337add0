import { IDLE, KEY_COLUMNS, type KeyRow, newKey, READY, readKey, writeLanes } from "./key-row.ts";
import type { Row, Sql } from "./rows.ts";

/** Rows kept between transactions. Enough for the keys that are worked on; a backlog does not fill memory. */
const MOST_CACHED = 10_000;

/** How much of a row must be written back. One that only got a longer line leaves the indexes alone. */
const CLEAN = 0;
const LENGTH = 1;
const WHOLE = 2;

interface CachedKey {
  readonly row: KeyRow;
  stored: boolean;
  dirty: number;
}

/**
 * The rows of keys, read at most once and written back once per transaction. They stay valid from one transaction
 * to the next as long as no other process wrote; the transaction says when that is no longer so.
 */
export class KeyTable {
  readonly #byName = new Map<string, CachedKey>();
  readonly #byId = new Map<number, CachedKey>();
  readonly #dirty = new Set<CachedKey>();
  readonly #statements: ReturnType<typeof prepare>;

  constructor(sql: Sql) {
    this.#statements = prepare(sql);
  }

  find(queue: number, name: string): KeyRow | undefined {
    return this.#byName.get(`${queue} ${name}`)?.row ?? this.#load(this.#statements.byName.get(queue, name));
  }

  get(id: number): KeyRow | undefined {
    return this.#byId.get(id)?.row ?? this.#load(this.#statements.byId.get(id));
  }

  add(id: number, queue: number, name: string): KeyRow {
    return this.#cache(newKey(id, queue, name), false);
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
    for (const cached of this.#dirty) this.#write(cached);
    this.#dirty.clear();
  }

  /** What is in memory may not be what is in the store. */
  forget(): void {
    this.#byId.clear();
    this.#byName.clear();
    this.#dirty.clear();
  }

  /** All of a queue were deleted from the store. */
  dropAll(queue: number): void {
    for (const cached of this.#byId.values()) {
      const { id, name } = cached.row;
      if (cached.row.queue !== queue) continue;
      this.#dirty.delete(cached);
      this.#byId.delete(id);
      this.#byName.delete(`${queue} ${name}`);
    }
  }

  trim(): void {
    if (this.#byId.size > MOST_CACHED) this.forget();
  }

  #mark(key: KeyRow, dirty: number): void {
    const cached = this.#byId.get(key.id);
    if (cached === undefined) throw new Error(`Key ${key.id} is not part of this transaction.`);
    if (cached.dirty < dirty) {
      cached.dirty = dirty;
      this.#dirty.add(cached);
    }
  }

  #write(cached: CachedKey): void {
    const { row, stored, dirty } = cached;
    cached.dirty = CLEAN;
    if (row.state === IDLE && !row.paused && !row.wanted && row.delayed === 0) {
      if (stored) this.#statements.delete.run(row.id);
      // Forgotten here too: the next arrival makes a new row with a new id.
      this.#byId.delete(row.id);
      this.#byName.delete(`${row.queue} ${row.name}`);
      return;
    }
    if (!stored && row.state === READY && row.lanes.length === 0 && !row.paused && !row.wanted && row.delayed === 0) {
      // By far the most frequent: an item came for a key that had none.
      this.#statements.insertReady.run(row.id, row.queue, row.name, row.head, row.level, row.place, row.readyAt);
    } else if (!stored) {
      this.#statements.insertBare.run(row.id, row.queue, row.name);
      this.#update(row);
    } else if (dirty === LENGTH) {
      this.#statements.saveLength.run(row.waiting, row.delayed, writeLanes(row.lanes), row.id);
    } else {
      this.#update(row);
    }
    cached.stored = true;
  }

  #update(row: KeyRow): void {
    this.#statements.save.run(
      row.state,
      row.paused ? 1 : 0,
      row.head,
      row.level,
      row.place,
      row.readyAt,
      row.attempt,
      row.at,
      row.granted,
      row.fence,
      row.held ? 1 : 0,
      row.cancel ? 1 : 0,
      row.since,
      row.worker ?? null,
      row.progress ?? null,
      row.waiting,
      row.delayed,
      writeLanes(row.lanes),
      row.gaps ? 1 : 0,
      row.wanted ? 1 : 0,
      row.covered,
      row.marked.length === 0 ? null : row.marked.join(" "),
      row.alone,
      row.id,
    );
  }

  #load(found: Row | undefined): KeyRow | undefined {
    return found === undefined ? undefined : this.#cache(readKey(found), true);
  }

  #cache(row: KeyRow, stored: boolean): KeyRow {
    const cached = { row, stored, dirty: CLEAN };
    this.#byId.set(row.id, cached);
    this.#byName.set(`${row.queue} ${row.name}`, cached);
    return row;
  }
}

function prepare(sql: Sql) {
  return {
    byName: sql(`SELECT ${KEY_COLUMNS} FROM key WHERE queue = ? AND name = ?`),
    byId: sql(`SELECT ${KEY_COLUMNS} FROM key WHERE id = ?`),
    insertReady: sql(
      "INSERT INTO key (id, queue, name, state, head, level, place, ready_at, waiting) VALUES (?, ?, ?, 1, ?, ?, ?, ?, 1)",
    ),
    insertBare: sql("INSERT INTO key (id, queue, name, state) VALUES (?, ?, ?, 0)"),
    saveLength: sql("UPDATE key SET waiting = ?, delayed = ?, lanes = ? WHERE id = ?"),
    save: sql(
      "UPDATE key SET state = ?, paused = ?, head = ?, level = ?, place = ?, ready_at = ?, attempt = ?, at = ?, granted = ?, fence = ?, " +
        "held = ?, cancel = ?, since = ?, worker = ?, progress = ?, waiting = ?, delayed = ?, lanes = ?, gaps = ?, wanted = ?, " +
        "covered = ?, marked = ?, alone = ? WHERE id = ?",
    ),
    delete: sql("DELETE FROM key WHERE id = ?"),
  };
}
