import type { Cell, Register, WriteRequest } from "../../locks/register.ts";
import type { Link, Row } from "./link.ts";
import { flag, integer, optionalInteger, text } from "./rows.ts";
import { NOW } from "./sql/functions.ts";
import type { Store } from "./store.ts";

/** Sorts behind every text that begins with the prefix before it. */
const LAST_CHARACTER = "\u{10FFFF}";

/**
 * The cells of the store, as locks see them. Their time runs out by the server's clock. Those who watch are told by `NOTIFY`, if their
 * process has said that it watches any; otherwise nothing is sent, because a notification makes its transaction wait for others.
 */
export class PostgresRegister implements Register {
  readonly #store: Store;
  readonly #link: Link;
  readonly #me: number;
  readonly #watches = new Map<string, Set<() => void>>();
  #said: Promise<void> | undefined;

  constructor(store: Store, link: Link, me: number) {
    this.#store = store;
    this.#link = link;
    this.#me = me;
  }

  async read(name: string): Promise<Cell | undefined> {
    const [row] = await this.#store.call(() =>
      this.#link.query(
        "baton_read_cell",
        `SELECT name, version, value FROM ${this.#link.schema}.cell WHERE name = $1 AND (expires IS NULL OR expires > ${NOW})`,
        [name],
      ),
    );
    return row === undefined ? undefined : readCell(row);
  }

  async write({ name, expected, value, ttlMs, tell = [], isQuiet = false }: WriteRequest): Promise<number | undefined> {
    const version = await this.#store.call(async () => {
      const ttl = ttlMs === undefined ? null : Math.ceil(ttlMs) + 1;
      const given = [name, expected, value ?? null, ttl, [...tell], isQuiet];
      const [row] = await this.#link.call("write_cell", this.#me, ...given);
      const written = row === undefined ? undefined : optionalInteger(row, 0);
      if (row === undefined || written === undefined) return undefined;
      const names = isQuiet ? tell : [name, ...tell];
      // Somebody may have begun to watch while this was being written.
      if (!flag(row, 1) && names.length > 0) await this.#link.call("ring_cells", this.#me, [...names]);
      return written;
    });
    if (version !== undefined) for (const changed of [name, ...tell]) this.#tell(changed);
    return version;
  }

  async list(prefix: string): Promise<readonly Cell[]> {
    const rows = await this.#store.call(() =>
      this.#link.query(
        "baton_list_cells",
        `SELECT name, version, value FROM ${this.#link.schema}.cell
         WHERE name >= $1 AND name < $2 AND (expires IS NULL OR expires > ${NOW}) ORDER BY name`,
        [prefix, prefix + LAST_CHARACTER],
      ),
    );
    return rows.map(readCell);
  }

  async watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    this.#store.assertOpen();
    let watches = this.#watches.get(name);
    if (watches === undefined) this.#watches.set(name, (watches = new Set()));
    watches.add(changed);
    await this.#sayThatWeWatch();
    return {
      stop: () => {
        watches.delete(changed);
        if (watches.size === 0 && this.#watches.get(name) === watches) this.#watches.delete(name);
      },
    };
  }

  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.watch(name, told);
  }

  /** The connection is the engine's, and outlives its register. */
  async close(): Promise<void> {
    this.#watches.clear();
    await Promise.resolve();
  }

  /** Once: the store says it again as long as it is open. */
  #sayThatWeWatch(): Promise<void> {
    if (this.#said === undefined) {
      this.#store.watchCells((name) => this.#hear(name));
      this.#said = this.#store.sayThatCellsAreWatched();
      this.#said.catch(() => (this.#said = undefined));
    }
    return this.#said;
  }

  #hear(name: string | undefined): void {
    if (name !== undefined) return this.#tell(name);
    for (const watched of this.#watches.keys()) this.#tell(watched);
  }

  #tell(name: string): void {
    for (const changed of Array.from(this.#watches.get(name) ?? [])) changed();
  }
}

function readCell(row: Row): Cell {
  return { name: text(row, 0), version: integer(row, 1), value: text(row, 2) };
}
