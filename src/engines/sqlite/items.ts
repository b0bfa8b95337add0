import { type Body, JSON_TYPE } from "../../domain/payload.ts";
import { body, integer, optionalInteger, optionalText, type Row, type Sql } from "./rows.ts";

/** An item as it is stored. All but `attempt` and `due` is written once. */
export interface ItemRow {
  readonly seq: number;
  /** The submitter's; undefined for one that the engine gave. */
  readonly id: string | undefined;
  readonly keep: number;
  /** Attempts before it last became the head of its key. */
  readonly attempt: number;
  /** The last few of its attempts that came to nothing, as they are written. */
  readonly tried: string | undefined;
  readonly key: number;
  readonly level: number;
  readonly type: string;
  readonly body: Body;
  readonly headers: string | undefined;
  readonly submitted: number;
  /** When it may run again after a failure, by the wall clock; 0 for at once. */
  readonly due: number;
  readonly losses: number;
}

/** What is needed to note how an item ended. */
export type EndedItem = Pick<ItemRow, "seq" | "id" | "keep" | "attempt" | "tried">;

/** Items, their links, and those that are delayed. */
export class Items {
  readonly #statements: ReturnType<typeof prepare>;
  /** Rows to be deleted, all with one statement at the end: that costs half of deleting them one by one. */
  readonly #discarded = new Set<number>();
  readonly #unlinked = new Set<number>();

  constructor(sql: Sql) {
    this.#statements = prepare(sql);
  }

  /** A new one. */
  add(item: Omit<ItemRow, "attempt" | "due" | "tried" | "losses">): void {
    const { seq, key, level, id = null, type, body: content, headers = null, submitted, keep } = item;
    const written = type === JSON_TYPE ? null : type;
    this.#statements.insert.run(seq, key, level, id, written, content, headers, submitted, keep);
  }

  get(seq: number): ItemRow | undefined {
    if (this.#discarded.has(seq)) return undefined;
    const row = this.#statements.get.get(seq);
    return row === undefined ? undefined : readItem(row);
  }

  /** The first items of a line, read together. Undefined stands for a link whose item is gone. */
  lineForGrant(first: number, last: number, most: number): readonly (ItemRow | undefined)[] {
    const rows = this.#statements.lineForGrant.all(first, last, most);
    return rows.map((row) => (row[0] === null ? undefined : readItem(row)));
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

  noteAttempt(seq: number, tried: string, isLost: boolean): void {
    this.#statements.noteAttempt.run(tried, Number(isLost), seq);
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

  remove(seq: number): EndedItem {
    const row = this.#statements.remove.get(seq);
    if (row === undefined) throw new Error(`Item ${seq} is not in the store.`);
    return readEnded(row);
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
    id: optionalText(row, 1),
    keep: integer(row, 2),
    attempt: integer(row, 3),
    tried: optionalText(row, 4),
    key: integer(row, 5),
    level: integer(row, 6),
    type: readType(row, 7),
    body: body(row, 8),
    headers: optionalText(row, 9),
    submitted: integer(row, 10),
    due: integer(row, 11),
    losses: integer(row, 12),
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
export function readType(row: Row, index: number): string {
  return optionalText(row, index) ?? JSON_TYPE;
}

const FOR_END = "seq, id, keep, attempt, tried";
const WHOLE = `${FOR_END}, key, level, type, body, headers, submitted, due, losses`;
/** The links of a line, from the first given up to the last given, at most so many. One query for all of them: to ask for each costs four times as much. */
const LINE =
  "WITH RECURSIVE line (seq, place) AS (SELECT ?, 1 UNION ALL " +
  "SELECT next, place + 1 FROM line JOIN link USING (seq) WHERE line.seq <> ? AND place < ?)";
const FROM_LINE = "FROM line LEFT JOIN item USING (seq) ORDER BY place";

function prepare(sql: Sql) {
  return {
    insert: sql(
      "INSERT INTO item (seq, key, level, id, type, body, headers, submitted, keep) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    get: sql(`SELECT ${WHOLE} FROM item WHERE seq = ?`),
    lineForGrant: sql(`${LINE} SELECT item.${WHOLE} ${FROM_LINE}`),
    lineForEnd: sql(`${LINE} SELECT item.${FOR_END} ${FROM_LINE}`),
    discard: sql("DELETE FROM item WHERE seq IN (SELECT value FROM json_each(?))"),
    due: sql("SELECT due FROM item WHERE seq = ?"),
    setDue: sql("UPDATE item SET due = ? WHERE seq = ?"),
    noteAttempt: sql("UPDATE item SET tried = ?, losses = losses + ? WHERE seq = ?"),
    addAttempts: sql("UPDATE item SET attempt = attempt + ? WHERE seq = ?"),
    remove: sql(`DELETE FROM item WHERE seq = ? RETURNING ${FOR_END}`),
    link: sql("INSERT OR REPLACE INTO link (seq, next) VALUES (?, ?)"),
    next: sql("SELECT next FROM link WHERE seq = ?"),
    unlink: sql("DELETE FROM link WHERE seq IN (SELECT value FROM json_each(?))"),
    insertDelayed: sql("INSERT INTO delayed (seq, key, due, front) VALUES (?, ?, ?, ?)"),
    dueDelayed: sql("SELECT seq, key, front FROM delayed WHERE due <= ? ORDER BY due, seq LIMIT ?"),
    delayedOf: sql("SELECT seq FROM delayed WHERE key = ? ORDER BY seq"),
    delayedDue: sql("SELECT due FROM delayed WHERE seq = ?"),
    removeDelayed: sql("DELETE FROM delayed WHERE seq = ?"),
    nextDelayed: sql("SELECT min(due) FROM delayed"),
  };
}
