import type { Clock } from "../../domain/clock.ts";
import { type Connections, Link } from "./link.ts";
import { flag } from "./rows.ts";

/** So many items removed by this handle are worth it: below that, autovacuum comes early enough. */
const WORTH_IT = 50_000;
/** However busy it is: vacuuming takes a tenth of a second or so. */
const LEAST_EVERY_MS = 5_000;

/**
 * Autovacuum looks once a minute. A busy queue removes a million rows in that time, and its table would grow to hold them all; so a handle that
 * has removed many vacuums by itself, on a connection of its own, one handle at a time. A role that does not own the tables may not, and leaves it to autovacuum.
 */
export class Vacuum {
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #schema: string;
  #removed = 0;
  #lastAt = -Infinity;
  #isForbidden = false;
  #running: Promise<void> | undefined;
  #link: Link | undefined;

  constructor(connections: Connections, clock: Clock, schema: string) {
    this.#connections = connections;
    this.#clock = clock;
    this.#schema = schema;
  }

  note(removed: number): void {
    this.#removed += removed;
    if (this.#removed < WORTH_IT || this.#isForbidden || this.#running !== undefined) return;
    const now = this.#clock.monotonic();
    if (now - this.#lastAt < LEAST_EVERY_MS) return;
    this.#lastAt = now;
    this.#removed = 0;
    this.#running = this.#run().finally(() => (this.#running = undefined));
  }

  async close(): Promise<void> {
    this.#isForbidden = true;
    await this.#running;
  }

  /** The server may stand still: its connection ends now. */
  cutOff(): void {
    this.#isForbidden = true;
    this.#link?.close();
  }

  async #run(): Promise<void> {
    const link = new Link(this.#connections, this.#schema, () => Promise.resolve());
    this.#link = link;
    link.onNotice = (_, severity) => {
      if (severity === "WARNING") this.#isForbidden = true;
    };
    try {
      const lock = "SELECT pg_try_advisory_lock(hashtext('baton vacuum'), hashtext($1))";
      const [row = []] = await link.query("baton_vacuum_lock", lock, [this.#schema]);
      const tables = ["item", "ready", "timer"].map((table) => `${this.#schema}.${table}`);
      const vacuum = `VACUUM (SKIP_LOCKED, TRUNCATE off) ${tables.join(", ")}`;
      if (flag(row, 0)) await link.query("baton_vacuum", vacuum, []);
    } catch {
      // Autovacuum does it later.
    } finally {
      // The lock goes with it.
      link.close();
    }
  }
}
