import type { Instant } from "../../domain/clock.ts";
import type { Cell } from "../../locks/register.ts";
import type { Requests } from "./messages.ts";
import { integer, type Row, text, type Sql } from "./rows.ts";
import type { Transaction } from "./transaction.ts";

/** Sorts behind every text that begins with the prefix before it. */
const LAST_CHARACTER = "\u{10FFFF}";

/** How long it can be seen that somebody was told. Threads with somebody who listens look every half second, whatever happens. */
const TOLD_MS = 10_000;

/**
 * The cells that locks are kept in. Their time runs out by the monotonic clock, like that of leases, so that no step of the
 * wall clock ends one early. A cell that is over is not there for anybody, whether or not its row still is.
 */
export class Cells {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(sql: Sql) {
    this.#statements = prepare(sql);
  }

  read(name: string, monotonic: number): Cell | undefined {
    const row = this.#statements.get.get(name, Math.floor(monotonic));
    return row === undefined ? undefined : readCell(row);
  }

  /** 0: it is not there. */
  version(name: string, monotonic: number): number {
    const row = this.#statements.version.get(name, Math.floor(monotonic));
    return row === undefined ? 0 : integer(row, 0);
  }

  list(prefix: string, monotonic: number): readonly Cell[] {
    return this.#statements.list.all(prefix, prefix + LAST_CHARACTER, Math.floor(monotonic)).map(readCell);
  }

  write(tx: Transaction, { name, expected, value, ttlMs, tell, isQuiet }: Requests["writeCell"]): number | undefined {
    if (this.version(name, tx.monotonic) !== expected) return undefined;
    const version = tx.next();
    if (value === undefined) this.#statements.remove.run(name);
    else if (ttlMs === undefined) this.#statements.save.run(name, version, value, tx.monotonic, null, null);
    else {
      // The clocks were rounded down; the end is rounded up, because it may never come early.
      const lastsMs = Math.ceil(ttlMs) + 1;
      this.#statements.save.run(name, version, value, tx.monotonic, tx.monotonic + lastsMs, tx.wall + lastsMs);
    }
    for (const told of tell)
      this.#statements.save.run(told, tx.next(), "", tx.monotonic, tx.monotonic + TOLD_MS, tx.wall + TOLD_MS);
    for (const changed of [name, ...tell]) tx.cells.add(changed);
    // Those in other processes look by themselves, twice a second.
    for (const news of isQuiet ? tell : [name, ...tell]) tx.cellNews.add(news);
    return version;
  }

  /**
   * The monotonic clock starts anew at a boot. What is left of a cell's time is then known by the wall clock only, and is
   * never more than it had.
   */
  countAnewAfterBoot({ monotonic, wall }: Instant): void {
    const now = Math.ceil(monotonic);
    this.#statements.countAnew.run(now, Math.floor(wall), now, now);
  }

  /** Removes the rows of cells that are over, a few at a time. */
  forgetExpired(monotonic: number, limit: number): number {
    return this.#statements.forgetExpired.change(monotonic, limit);
  }
}

function readCell(row: Row): Cell {
  return { name: text(row, 0), version: integer(row, 1), value: text(row, 2) };
}

function prepare(sql: Sql) {
  return {
    get: sql("SELECT name, version, value FROM cell WHERE name = ? AND (expires IS NULL OR expires > ?)"),
    version: sql("SELECT version FROM cell WHERE name = ? AND (expires IS NULL OR expires > ?)"),
    list: sql(
      "SELECT name, version, value FROM cell WHERE name >= ? AND name < ? AND (expires IS NULL OR expires > ?) ORDER BY name",
    ),
    save: sql("INSERT OR REPLACE INTO cell (name, version, value, written, expires, until) VALUES (?, ?, ?, ?, ?, ?)"),
    remove: sql("DELETE FROM cell WHERE name = ?"),
    countAnew: sql(
      "UPDATE cell SET expires = ? + max(0, min(until - ?, expires - written)), written = ? WHERE expires IS NOT NULL AND written > ?",
    ),
    forgetExpired: sql(
      "DELETE FROM cell WHERE name IN (SELECT name FROM cell WHERE expires <= ? ORDER BY expires LIMIT ?)",
    ),
  };
}
