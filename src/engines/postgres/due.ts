import type { Clock, Timer } from "../../domain/clock.ts";
import type { Link, Row } from "./link.ts";
import { flag, integer } from "./rows.ts";

/** A busy queue asks this often whether anything has become due. */
const ASK_EVERY_MS = 20;
/** Something is due, but another process is at it: look again soon. */
const AGAIN_MS = 5;
/** A server that could not be asked is asked again after so long. */
const FAILED_AGAIN_MS = 250;

export interface DueParts {
  readonly link: Link;
  readonly clock: Clock;
  readonly schema: string;
  readonly me: number;
  /** Something may have come to a queue, and ended there; others were told, or not. */
  readonly came: (queue: number, rung: boolean) => void;
  /** And leases may have run out in it. */
  readonly swept: (queue: number) => void;
  /** There is something to do. */
  readonly nudge: () => void;
  /** It could not be done. */
  readonly failed: () => void;
}

/** What happens because time passes: when it is next, and that somebody looks then. */
export class Due {
  readonly #parts: DueParts;
  #timer: Timer | undefined;
  #isNow = false;
  #askedAt = -Infinity;
  #closed = false;

  constructor(parts: DueParts) {
    this.#parts = parts;
  }

  /** Somebody should look. */
  get isNow(): boolean {
    return this.#isNow;
  }

  now(): void {
    this.#isNow = true;
  }

  /** Below zero: nothing will be, or nobody asked. */
  in(ms: number): void {
    if (ms < 0 || this.#closed) return;
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.setTimer(Math.max(ms, AGAIN_MS), () => {
      this.#timer = undefined;
      this.#isNow = true;
      this.#parts.nudge();
    });
  }

  /** A step that is under way anyway should ask. */
  shouldAsk(): boolean {
    const now = this.#parts.clock.monotonic();
    if (now - this.#askedAt < ASK_EVERY_MS) return false;
    this.#askedAt = now;
    return true;
  }

  async ask(): Promise<void> {
    const { link, schema } = this.#parts;
    const [row] = await link.query("baton_due_in", `SELECT ${schema}.due_in()`, []);
    this.in(row === undefined ? -1 : integer(row, 0));
  }

  async sweep(): Promise<void> {
    const { link, schema, me, swept, failed } = this.#parts;
    this.#isNow = false;
    try {
      for (const name of ["sweep_delayed", "sweep_timers"]) {
        const rows = await link.query(`baton_${name}`, `SELECT * FROM ${schema}.${name}($1)`, [me]);
        this.#tell(rows);
        for (const row of rows) swept(integer(row, 0));
      }
      await this.ask();
    } catch {
      // Whoever waits hears of it from his own look.
      this.in(FAILED_AGAIN_MS);
      failed();
    }
  }

  /** Before something is reported, what is due happens: nobody may wait for work, and those who had leases may be gone. */
  async catchUp(): Promise<void> {
    const { link, schema } = this.#parts;
    const [row] = await link.query("baton_due_in", `SELECT ${schema}.due_in()`, []);
    if (row !== undefined && integer(row, 0) === 0) await this.sweep();
  }

  /** What was submitted in transactions that have been committed since is counted in, and takes its place if it is due. */
  async countIn(): Promise<void> {
    const { link, schema, me } = this.#parts;
    for (;;) {
      const rows = await link.query("baton_count_in", `SELECT * FROM ${schema}.count_in($1)`, [me]);
      if (rows.length === 0) return;
      this.#tell(rows);
    }
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #tell(rows: readonly Row[]): void {
    for (const row of rows) this.#parts.came(integer(row, 0), flag(row, 1));
  }
}
