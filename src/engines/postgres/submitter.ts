import { InvalidInput } from "../../domain/errors.ts";
import { instant, type Timer } from "../../domain/clock.ts";
import type { Lease, Submission, SubmitResult } from "../../engine/port.ts";
import { UndecidedId } from "./failure.ts";
import type { ServingHandle } from "./serving.ts";
import type { SubmitCall } from "./lane.ts";
import { columnsOf, payloadOf } from "./bodies.ts";
import type { QueueClaims, WaitingClaim } from "./claims.ts";
import type { Row } from "./link.ts";
import { integer, text } from "./rows.ts";
import { entryOf, isPlain, submitArguments, submitResult } from "./submissions.ts";

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

/**
 * Somebody who waits for work of a queue while an item of it is submitted in the same process. If nothing else waits in the queue, the store hands the
 * item out as it writes it, with one commit in place of two; if something does, or the queue is paused, the next step looks, as ever.
 */
interface Taker {
  readonly claims: QueueClaims;
  readonly claim: WaitingClaim;
  /** With it nobody here sleeps any more. */
  readonly isLast: boolean;
}

/** Writes all submissions of a turn with one statement, and tells each caller what became of its own. */
export class Submitter {
  readonly #handle: ServingHandle;
  /**
   * Calls with an id that another transaction has submitted, and which is open still: whether they are duplicates is decided when it ends. They
   * are tried again now and then, each by itself, and everything else of the handle goes on.
   */
  readonly #undecided = new Map<SubmitCall, PutOff>();
  #closed = false;

  constructor(handle: ServingHandle) {
    this.#handle = handle;
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
    const entries = submissions.map((submission) => entryOf(queues, submission));
    const plain = isPlain(entries);
    const taker = plain ? this.#takerOf(submissions) : undefined;
    const takes = taker === undefined ? [null, 0, false] : takerArguments(taker);
    const given = submitArguments(entries);
    if (taker !== undefined) taker.claim.isAsked = true;
    const since = instant(clock);
    try {
      const rows = await link.call("submit", me, ...rings.take(), plain, ...given, ...takes);
      return this.#read(submissions, rows, taker, since);
    } catch (error) {
      // Nobody knows what became of it: the mark that somebody sleeps may be gone, and whoever does has to look for himself.
      taker?.claims.wakeUp();
      throw error;
    } finally {
      taker?.claims.release(taker.claim);
    }
  }

  /** Where one comes alone. Only where they sleep: whoever does not is about to look. */
  #takerOf([first, ...others]: readonly Submission[]): Taker | undefined {
    if (first === undefined || others.length > 0) return undefined;
    const claims = this.#handle.leases.claims.get(this.#handle.queues.known(first.queue).id);
    const claim = claims?.first;
    if (claims?.asleep !== true || claim === undefined) return undefined;
    return { claims, claim, isLast: claims.size === 1 };
  }

  #read(
    submissions: readonly Submission[],
    rows: readonly Row[],
    taker: Taker | undefined,
    since: Lease["since"],
  ): readonly SubmitResult[] {
    const { queues } = this.#handle;
    const results: SubmitResult[] = [];
    for (const row of rows) {
      const position = integer(row, 0) - 1;
      const submission = submissions[position];
      if (submission !== undefined) {
        const result = submitResult(queues, submission, row);
        results[position] = result;
        if (result.ok && result.accepted.replaced.length > 0)
          this.#handle.ended(queues.get(submission.queue).id, false);
      } else if (position === HANDED_OUT) this.#handOut(taker, submissions[0], results[0], row, since);
      else this.#handle.changed(integer(row, 4), integer(row, 1) === 1);
    }
    return results;
  }

  #handOut(
    taker: Taker | undefined,
    submission: Submission | undefined,
    result: SubmitResult | undefined,
    row: Row,
    since: Lease["since"],
  ): void {
    if (taker === undefined || submission === undefined || result?.ok !== true)
      throw new Error("The store handed out what it did not accept.");
    const { type, text: body, bytes } = columnsOf(submission.payload);
    const { id, level, at } = result.accepted;
    const { queue, key, headers } = submission;
    const lease = { queue, key, fence: integer(row, 5), since, handle: Number(text(row, 3)) };
    const payload = payloadOf(type, body, bytes);
    const item = { id, queue, key, level, payload, headers, submittedAt: at, attempt: 1 };
    if (taker.isLast) taker.claims.wakeUp();
    this.#handle.leases.answer(taker.claim, [{ lease, item }]);
  }
}

function takerArguments({ claim, isLast }: Taker): readonly unknown[] {
  const { worker, leaseMs } = claim.request;
  return [worker, Math.ceil(leaseMs), isLast];
}
