/**
 * Looks whether the store still has the holds of this process. A holder is removed from its lock's record only when its session
 * is over; but somebody may remove the record by the store's own means, and the next who asks finds the lock free.
 */
import type { Clock, Timer } from "../domain/clock.ts";
import type { LockCells } from "./lock-cells.ts";
import { holderOf } from "./rules.ts";
import type { OwnSession, Trace } from "./sessions.ts";

/** Most locks are held for less time than this, and are not watched. */
const WATCH_AFTER_MS = 250;
/** Looks at a time. */
const MOST_AT_A_TIME = 16;

interface Checked {
  readonly session: OwnSession;
  readonly nonce: string;
  readonly trace: Trace;
  readonly lost: () => void;
  timer: Timer | undefined;
  watch: { stop(): void } | undefined;
}

export class HoldChecks {
  readonly #cells: LockCells;
  readonly #clock: Clock;
  readonly #watches: boolean;
  /** By nonce. A session that nobody has any more takes its holds along. */
  readonly #ofSession = new WeakMap<OwnSession, Map<string, Checked>>();
  /** Sessions whose holds are being looked at. */
  readonly #looking = new Set<OwnSession>();

  /** `watches`: a change of a cell is told at little cost. */
  constructor(cells: LockCells, clock: Clock, watches: boolean) {
    this.#cells = cells;
    this.#clock = clock;
    this.#watches = watches;
  }

  /** From the grant on. */
  begin(session: OwnSession, nonce: string, trace: Trace, lost: () => void): void {
    const checked: Checked = { session, nonce, trace, lost, timer: undefined, watch: undefined };
    let holds = this.#ofSession.get(session);
    if (holds === undefined) this.#ofSession.set(session, (holds = new Map<string, Checked>()));
    holds.set(nonce, checked);
    if (this.#watches) checked.timer = this.#clock.setTimer(WATCH_AFTER_MS, () => void this.#watch(checked));
  }

  /** Before it is released: what happens to its record then is no loss. */
  end(session: OwnSession, nonce: string): void {
    const holds = this.#ofSession.get(session);
    const checked = holds?.get(nonce);
    holds?.delete(nonce);
    checked?.timer?.cancel();
    checked?.watch?.stop();
  }

  /** With each sign of life, which is the latest that a loss is noticed. */
  async look(session: OwnSession): Promise<void> {
    if (this.#looking.has(session)) return;
    this.#looking.add(session);
    const due = Array.from(this.#ofSession.get(session)?.values() ?? []);
    const lookOn = async (): Promise<void> => {
      for (let checked = due.pop(); checked !== undefined; checked = due.pop()) await this.#look(checked);
    };
    try {
      await Promise.all(Array.from({ length: Math.min(MOST_AT_A_TIME, due.length) }, lookOn));
    } finally {
      this.#looking.delete(session);
    }
  }

  async #watch(checked: Checked): Promise<void> {
    try {
      const watch = await this.#cells.watch(checked.trace.lock, () => void this.#look(checked));
      if (!this.#isHeld(checked)) return watch.stop();
      checked.watch = watch;
      this.#endWithSession(checked);
      await this.#look(checked);
    } catch {
      // The next sign of life looks all the same.
    }
  }

  /** Nobody releases what was lost with its session. */
  #endWithSession(checked: Checked): void {
    const { session, nonce } = checked;
    checked.timer = this.#clock.setTimer(session.leaseMs, () => {
      if (session.isCertain(this.#clock)) this.#endWithSession(checked);
      else this.end(session, nonce);
    });
  }

  #isHeld(checked: Checked): boolean {
    return this.#ofSession.get(checked.session)?.get(checked.nonce) === checked;
  }

  async #look(checked: Checked): Promise<void> {
    const { session, nonce, trace, lost } = checked;
    if (!this.#isHeld(checked)) return;
    try {
      const { record } = await this.#cells.read(trace.lock);
      // It may have been let go meanwhile.
      if (holderOf(record, nonce) !== undefined || !this.#isHeld(checked)) return;
    } catch {
      // No answer says nothing: the lease decides.
      return;
    }
    this.end(session, nonce);
    trace.isUsed = false;
    if (trace.doubtedAt === undefined) session.traces.delete(nonce);
    lost();
  }
}
