import type { Timer } from "../../domain/clock.ts";
import type { Handle } from "./handle.ts";
import type { Row } from "./link.ts";
import { flag, integer } from "./rows.ts";

/** A busy queue asks this often whether anything has become due. */
const ASK_EVERY_MS = 20;
/** Something is due, but another process is at it: look again soon. */
const AGAIN_MS = 5;
/** A server that could not be asked is asked again after so long. */
const FAILED_AGAIN_MS = 250;

/** Receipts and cells whose time is over are forgotten this often, and so many at a time. */
const FORGET_EVERY_MS = 1_000;
const FORGET_AT_A_TIME = 1_000;
/** When there is more to forget than fits into one transaction. */
const FORGET_MORE_MS = 50;

export interface DueEvents {
  /** Leases may have run out in the queue. */
  swept(queue: number): void;
  /** It could not be done. */
  failed(): void;
}

/** What happens because time passes: when it is next, and that somebody looks then. */
export class Due {
  readonly #handle: Handle;
  readonly #events: DueEvents;
  #timer: Timer | undefined;
  #isNow = false;
  #askedAt = -Infinity;
  #forgetAt = 0;
  #closed = false;

  constructor(handle: Handle, events: DueEvents) {
    this.#handle = handle;
    this.#events = events;
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
    this.#timer = this.#handle.clock.setTimer(Math.max(ms, AGAIN_MS), () => {
      this.#timer = undefined;
      this.#isNow = true;
      this.#handle.lane.nudge();
    });
  }

  /** A step that is under way anyway should ask. */
  shouldAsk(): boolean {
    const now = this.#handle.clock.monotonic();
    if (now - this.#askedAt < ASK_EVERY_MS) return false;
    this.#askedAt = now;
    return true;
  }

  async ask(): Promise<void> {
    const [row] = await this.#handle.link.call("due_in");
    this.in(row === undefined ? -1 : integer(row, 0));
  }

  async sweep(): Promise<void> {
    const { link, me } = this.#handle;
    this.#isNow = false;
    try {
      this.#tell(await link.call("sweep_delayed", me, false));
      const rows = await link.call("sweep_timers", me);
      this.#tell(rows);
      for (const row of rows) this.#events.swept(integer(row, 0));
      await this.ask();
    } catch {
      // Whoever waits hears of it from his own look.
      this.in(FAILED_AGAIN_MS);
      this.#events.failed();
    }
  }

  /** Before something is reported, what is due happens: nobody may wait for work, and those who had leases may be gone. */
  async catchUp(): Promise<void> {
    const [row] = await this.#handle.link.call("due_in");
    if (row !== undefined && integer(row, 0) === 0) await this.sweep();
  }

  /** Also what was submitted in transactions that have been committed since: it is counted in, and takes its place if it is due. */
  async catchUpWithAll(): Promise<void> {
    const { link, me } = this.#handle;
    let rows;
    do this.#tell((rows = await link.call("sweep_delayed", me, true)));
    while (rows.length > 0);
    await this.catchUp();
  }

  async forgetNowAndThen(): Promise<void> {
    const { clock, link } = this.#handle;
    const now = clock.monotonic();
    if (this.#closed || now < this.#forgetAt) return;
    this.#forgetAt = now + FORGET_EVERY_MS;
    try {
      const [row] = await link.call("forget", FORGET_AT_A_TIME);
      if (row !== undefined && integer(row, 0) === FORGET_AT_A_TIME)
        this.#forgetAt = clock.monotonic() + FORGET_MORE_MS;
    } catch {
      // What is not forgotten now is forgotten later.
    }
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #tell(rows: readonly Row[]): void {
    for (const row of rows) {
      this.#handle.changed(integer(row, 0), flag(row, 1));
      // Leases that ran out may have ended an item, too.
      this.#handle.ended(integer(row, 0), false);
    }
  }
}
