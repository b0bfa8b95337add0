import type { DatabaseSync } from "node:sqlite";
import { type Body, JSON_TYPE, type Payload } from "../../domain/payload.ts";
import { body, integer, optionalInteger, optionalText, type Row, Statement } from "./rows.ts";

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
  /** The last few of its attempts that came to nothing, as they are written. */
  readonly tried: string | undefined;
}

export interface GrantedItem {
  readonly seq: number;
  readonly id: string | undefined;
  readonly type: string;
  readonly body: Body;
  readonly headers: string | undefined;
  readonly submitted: number;
  readonly keep: number;
  readonly attempt: number;
  readonly tried: string | undefined;
  readonly losses: number;
}

/** What is needed to note how an item ended. */
export type EndedItem = Pick<GrantedItem, "seq" | "id" | "keep" | "attempt" | "tried">;

/** Items, their links, and those that are delayed. */
export class Items {
  readonly #statements: ReturnType<typeof prepare>;
  /** Rows to be deleted, all with one statement at the end: that costs half of deleting them one by one. */
  readonly #discarded = new Set<number>();
  readonly #unlinked = new Set<number>();

  constructor(db: DatabaseSync) {
    this.#statements = prepare(db);
  }

  /** A new one. */
  add(item: Omit<ItemRow, "attempt" | "due" | "tried">): void {
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
    return row === undefined ? undefined : readGranted(row);
  }

  /** The same of the first items of a line, read together. Undefined stands for a link whose item is gone. */
  lineForGrant(first: number, last: number, most: number): readonly (GrantedItem | undefined)[] {
    const rows = this.#statements.lineForGrant.all(first, last, most);
    return rows.map((row) => (row[0] === null ? undefined : readGranted(row)));
  }

  /** The same, as far as it is needed to note how they end: up to the first link whose item is gone. */
  lineForEnd(first: number, last: number, most: number): EndedItem[] {
    const rows = this.#statements.lineForEnd.all(first, last, most);
    const gone = rows.findIndex((row) => row[0] === null);
    return rows.slice(0, gone === -1 ? rows.length : gone).map(readEnded);
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

  setTried(seq: number, tried: string): void {
    this.#statements.setTried.run(tried, seq);
  }

  /** Its lease was lost. */
  setLost(seq: number, tried: string): void {
    this.#statements.setLost.run(tried, seq);
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

  remove(seq: number): EndedItem | undefined {
    const row = this.#statements.remove.get(seq);
    return row === undefined ? undefined : readEnded(row);
  }

  link(seq: number, next: number): void {
    this.#unlinked.delete(seq);
    this.#statements.link.run(seq, next);
  }

  /** Takes the link behind an item away, and says where it led; `known` spares to read it. */
  unlink(seq: number, known?: number): number | undefined {
    const row = known === undefined ? this.#statements.next.get(seq) : [known];
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
    tried: optionalText(row, 11),
  };
}

function readGranted(row: Row): GrantedItem {
  return {
    seq: integer(row, 0),
    id: optionalText(row, 1),
    type: readType(row, 2),
    body: body(row, 3),
    headers: optionalText(row, 4),
    submitted: integer(row, 5),
    keep: integer(row, 6),
    attempt: integer(row, 7),
    tried: optionalText(row, 8),
    losses: integer(row, 9),
  };
}

function readEnded(row: Row): EndedItem {
  return {
    seq: integer(row, 0),
    id: optionalText(row, 1),
    keep: integer(row, 2),
    attempt: integer(row, 3),
    tried: optionalText(row, 4),
  };
}

/** An id is known as long as its item lives, also when nothing is kept of how it ends. */
export function isRemembered({ id, keep }: Pick<ItemRow, "id" | "keep">): boolean {
  return keep > 0 || id !== undefined;
}

/** Nearly everything is JSON: that is not written out. */
export function writeType(type: string): string | null {
  return type === JSON_TYPE ? null : type;
}

export function readType(row: Row, index: number): string {
  return optionalText(row, index) ?? JSON_TYPE;
}

const FOR_GRANT = "seq, id, type, body, headers, submitted, keep, attempt, tried, losses";
const FOR_END = "seq, id, keep, attempt, tried";
/** The links of a line, from the first given up to the last given, at most so many. One query for all of them: to ask for each costs four times as much. */
const LINE =
  "WITH RECURSIVE line (seq, place) AS (SELECT ?, 1 UNION ALL " +
  "SELECT next, place + 1 FROM line JOIN link USING (seq) WHERE line.seq <> ? AND place < ?)";
const FROM_LINE = "FROM line LEFT JOIN item USING (seq) ORDER BY place";

function prepare(db: DatabaseSync) {
  return {
    insert: new Statement(
      db,
      "INSERT INTO item (seq, key, level, id, type, body, headers, submitted, keep) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    get: new Statement(
      db,
      "SELECT seq, key, level, id, type, body, headers, submitted, keep, attempt, due, tried FROM item WHERE seq = ?",
    ),
    forGrant: new Statement(db, `SELECT ${FOR_GRANT} FROM item WHERE seq = ?`),
    lineForGrant: new Statement(db, `${LINE} SELECT item.${FOR_GRANT} ${FROM_LINE}`),
    lineForEnd: new Statement(db, `${LINE} SELECT item.${FOR_END} ${FROM_LINE}`),
    discard: new Statement(db, "DELETE FROM item WHERE seq IN (SELECT value FROM json_each(?))"),
    due: new Statement(db, "SELECT due FROM item WHERE seq = ?"),
    setDue: new Statement(db, "UPDATE item SET due = ? WHERE seq = ?"),
    setTried: new Statement(db, "UPDATE item SET tried = ? WHERE seq = ?"),
    setLost: new Statement(db, "UPDATE item SET tried = ?, losses = losses + 1 WHERE seq = ?"),
    addAttempts: new Statement(db, "UPDATE item SET attempt = attempt + ? WHERE seq = ?"),
    remove: new Statement(db, `DELETE FROM item WHERE seq = ? RETURNING ${FOR_END}`),
    link: new Statement(db, "INSERT OR REPLACE INTO link (seq, next) VALUES (?, ?)"),
    next: new Statement(db, "SELECT next FROM link WHERE seq = ?"),
    unlink: new Statement(db, "DELETE FROM link WHERE seq IN (SELECT value FROM json_each(?))"),
    insertDelayed: new Statement(db, "INSERT INTO delayed (seq, key, due, front) VALUES (?, ?, ?, ?)"),
    dueDelayed: new Statement(db, "SELECT seq, key, front FROM delayed WHERE due <= ? ORDER BY due, seq LIMIT ?"),
    delayedOf: new Statement(db, "SELECT seq FROM delayed WHERE key = ? ORDER BY seq"),
    delayedDue: new Statement(db, "SELECT due FROM delayed WHERE seq = ?"),
    removeDelayed: new Statement(db, "DELETE FROM delayed WHERE seq = ?"),
    nextDelayed: new Statement(db, "SELECT min(due) FROM delayed"),
  };
}
