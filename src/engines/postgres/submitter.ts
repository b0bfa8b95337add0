import { InvalidInput } from "../../domain/errors.ts";
import { instant, type Timer } from "../../domain/clock.ts";
import type { Lease, Submission, SubmitResult } from "../../engine/port.ts";
import { UndecidedId } from "./failure.ts";
import type { Handle } from "./handle.ts";
import type { SubmitCall } from "./lane.ts";
import type { Leases } from "./leases.ts";
import type { Row } from "./link.ts";
import { integer } from "./rows.ts";
import { isPlain, submitArguments, submitResult } from "./submissions.ts";
import { NO_TAKER, Taker } from "./taker.ts";

/** Where the rows of others have their position. */
const HANDED_OUT = -2;
/** One whose id is undecided is tried again after a pause, which doubles up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Whoever submits is told after this long that a transaction is open; it may stay so for hours. */
const PATIENCE_MS = 10_000;

interface PutOff {
  readonly since: number;
  readonly pauseMs: number;
  readonly timer: Timer;
  readonly error: unknown;
}

/** Writes all submissions of a turn with one statement, and tells each caller what became of its own. */
export class Submitter {
  readonly #handle: Handle;
  readonly #leases: Leases;
  /**
   * Calls with an id that another transaction has submitted, and which is open still: whether they are duplicates is decided when it ends. They
   * are tried again now and then, each by itself, and everything else of the handle goes on.
   */
  readonly #undecided = new Map<SubmitCall, PutOff>();
  #closed = false;

  constructor(handle: Handle, leases: Leases) {
    this.#handle = handle;
    this.#leases = leases;
  }

  async submit(calls: readonly SubmitCall[]): Promise<void> {
    const submissions = calls.flatMap(({ input }) => input);
    try {
      const results = await this.#write(submissions);
      let from = 0;
      for (const call of calls) {
        this.#undecided.delete(call);
        call.resolve(results.slice(from, from + call.input.length));
        from += call.input.length;
      }
    } catch (error) {
      // One that the store cannot digest, or cannot decide yet, must not take the others with it.
      if (calls.length > 1 && (error instanceof InvalidInput || error instanceof UndecidedId)) {
        const half = calls.length >> 1;
        await this.submit(calls.slice(0, half));
        await this.submit(calls.slice(half));
      } else for (const call of calls) this.#fail(call, error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#undecided.values()) timer.cancel();
    for (const [{ reject }, { error }] of this.#undecided) reject(error);
    this.#undecided.clear();
  }

  #fail(call: SubmitCall, error: unknown): void {
    const { clock, lane } = this.#handle;
    const now = clock.monotonic();
    const { since, pauseMs } = this.#undecided.get(call) ?? { since: now, pauseMs: FIRST_PAUSE_MS };
    if (this.#closed || !(error instanceof UndecidedId) || now - since >= PATIENCE_MS) {
      this.#undecided.delete(call);
      call.reject(error);
      return;
    }
    const timer = clock.setTimer(pauseMs, () => void lane.call(() => this.submit([call])));
    this.#undecided.set(call, { since, pauseMs: Math.min(pauseMs * 2, LONGEST_PAUSE_MS), timer, error });
  }

  async #write(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    if (submissions.length === 0) return [];
    const { link, clock, me, queues, rings } = this.#handle;
    const plain = isPlain(submissions);
    const given = submitArguments(queues, submissions);
    const taker = plain ? this.#takerOf(submissions) : undefined;
    const takes = taker?.values ?? NO_TAKER;
    const since = instant(clock);
    try {
      const rows = await link.call("submit", me, ...rings.take(), plain, ...given, ...takes);
      return this.#read(submissions, rows, taker, since);
    } catch (error) {
      taker?.fail();
      throw error;
    } finally {
      taker?.leave();
    }
  }

  /** Who waits here for work of the queue, where one comes alone: it may be handed out as it is written. */
  #takerOf([first, ...others]: readonly Submission[]): Taker | undefined {
    if (first === undefined || others.length > 0) return undefined;
    const claims = this.#leases.claims.get(this.#handle.queues.known(first.queue).id);
    return claims === undefined ? undefined : Taker.of(claims, this.#leases);
  }

  #read(
    submissions: readonly Submission[],
    rows: readonly Row[],
    taker: Taker | undefined,
    since: Lease["since"],
  ): readonly SubmitResult[] {
    const { queues, changed, ended } = this.#handle;
    const results: SubmitResult[] = [];
    for (const row of rows) {
      const position = integer(row, 0) - 1;
      const submission = submissions[position];
      if (submission !== undefined) {
        const result = submitResult(queues, submission, row);
        results[position] = result;
        if (result.ok && result.accepted.replaced.length > 0) ended(queues.get(submission.queue).id, false);
      } else if (position === HANDED_OUT) taker?.take(submissions[0], results[0], row, since);
      else changed(integer(row, 4), integer(row, 1) === 1);
    }
    return results;
  }
}
