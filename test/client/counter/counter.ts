/** A counter in a file, that many processes count up by reading it and writing one more. */
import { DatabaseSync } from "node:sqlite";

export interface Count {
  readonly n: number;
  readonly fence: number;
}

/** With `checked`, it refuses whoever comes under a lower fence than one that it has seen. */
export class Counter {
  readonly #database: DatabaseSync;
  readonly #checked: boolean;

  constructor(file: string, checked: boolean) {
    this.#checked = checked;
    // Somebody who is stopped while it writes keeps the file until it goes on.
    this.#database = new DatabaseSync(file, { timeout: 30_000 });
    this.#database.exec("CREATE TABLE IF NOT EXISTS counter (n INTEGER, fence INTEGER)");
    this.#database.exec("CREATE TABLE IF NOT EXISTS counted (n INTEGER, fence INTEGER)");
    this.#database.exec("CREATE TABLE IF NOT EXISTS refused (fence INTEGER)");
    this.#database.exec("INSERT INTO counter SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM counter)");
  }

  /** Shows the fence before it reads: from here on nobody can write under a lower one. */
  read(fence: number): number {
    this.#database.prepare("UPDATE counter SET fence = ? WHERE fence < ?").run(fence, fence);
    return Number(this.#database.prepare("SELECT n FROM counter").get()?.["n"]);
  }

  write(n: number, fence: number): void {
    this.#database.exec("BEGIN IMMEDIATE");
    const condition = this.#checked ? "fence = ?" : "fence >= ? OR TRUE";
    const { changes } = this.#database.prepare(`UPDATE counter SET n = ? WHERE ${condition}`).run(n, fence);
    if (changes === 1) this.#database.prepare("INSERT INTO counted VALUES (?, ?)").run(n, fence);
    else this.#database.prepare("INSERT INTO refused VALUES (?)").run(fence);
    this.#database.exec("COMMIT");
  }

  /** Every write that was accepted, in order. */
  counted(): readonly Count[] {
    const rows = this.#database.prepare("SELECT n, fence FROM counted ORDER BY rowid").all();
    return rows.map((row) => ({ n: Number(row["n"]), fence: Number(row["fence"]) }));
  }

  refused(): number {
    return Number(this.#database.prepare("SELECT count(*) AS n FROM refused").get()?.["n"]);
  }

  close(): void {
    this.#database.close();
  }
}

/** Those that were counted up from a number that was no longer the last. */
export function lostUpdates(counted: readonly Count[]): readonly Count[] {
  return counted.filter(({ n }, index) => n !== index + 1);
}
