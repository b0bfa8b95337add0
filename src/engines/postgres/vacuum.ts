import type { Clock } from "../../domain/clock.ts";
import type { Connections } from "./link.ts";

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
  readonly #cut = new AbortController();

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
    this.#cut.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#cut;
    try {
      const connection = await this.#connections.connect(signal);
      const { client } = connection;
      const end = (): void => connection.release(true);
      signal.addEventListener("abort", end, { once: true });
      try {
        signal.throwIfAborted();
        client.on("notice", ({ severity }) => {
          if (severity === "WARNING") this.#isForbidden = true;
        });
        const { rows } = await client.query<{ mine: boolean }>(
          "SELECT pg_try_advisory_lock(hashtext('baton vacuum'), hashtext($1)) AS mine",
          [this.#schema],
        );
        const tables = ["item", "ready", "timer"].map((table) => `${this.#schema}.${table}`);
        if (rows[0]?.mine === true) await client.query(`VACUUM (SKIP_LOCKED, TRUNCATE off) ${tables.join(", ")}`);
      } finally {
        signal.removeEventListener("abort", end);
        // The lock goes with it.
        connection.release(true);
      }
    } catch {
      // Autovacuum does it later.
    }
  }
}
