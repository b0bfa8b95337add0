import { InvalidInput } from "../../domain/errors.ts";
import { type Clock, instant } from "../../domain/clock.ts";
import type { Lease, Submission, SubmitResult } from "../../engine/port.ts";
import { UndecidedId } from "./failure.ts";
import type { SubmitCall } from "./lane.ts";
import type { Leases } from "./leases.ts";
import type { Link, Row } from "./link.ts";
import type { Queues } from "./queues.ts";
import type { Rings } from "./rings.ts";
import { integer } from "./rows.ts";
import { isPlain, submitArguments, submitResult } from "./submissions.ts";
import { NO_TAKER, Taker } from "./taker.ts";
import { Undecided } from "./undecided.ts";

export interface SubmitterParts {
  readonly link: Link;
  readonly clock: Clock;
  readonly schema: string;
  readonly me: number;
  readonly queues: Queues;
  readonly rings: Rings;
  readonly leases: Leases;
  /** Makes a call again, when its turn comes. */
  readonly again: (call: SubmitCall) => void;
  /** Something came to a queue; others were told, or not. */
  readonly changed: (queue: number, rung: boolean) => void;
  /** Items of a queue were replaced. */
  readonly ended: (queue: number) => void;
}

/** Where the rows of others have their position. */
const HANDED_OUT = -2;

/** Writes all submissions of a turn with one statement, and tells each caller what became of its own. */
export class Submitter {
  readonly #parts: SubmitterParts;
  readonly #undecided: Undecided;

  constructor(parts: SubmitterParts) {
    this.#parts = parts;
    this.#undecided = new Undecided(parts.clock, parts.again);
  }

  async submit(calls: readonly SubmitCall[]): Promise<void> {
    const submissions = calls.flatMap(({ input }) => input);
    try {
      const results = await this.#write(submissions);
      let from = 0;
      for (const call of calls) {
        this.#undecided.answered(call);
        call.resolve(results.slice(from, from + call.input.length));
        from += call.input.length;
      }
    } catch (error) {
      // One that the store cannot digest, or cannot decide yet, must not take the others with it.
      if (calls.length > 1 && (error instanceof InvalidInput || error instanceof UndecidedId)) {
        const half = calls.length >> 1;
        await this.submit(calls.slice(0, half));
        await this.submit(calls.slice(half));
      } else if (error instanceof UndecidedId) for (const call of calls) this.#undecided.putOff(call, error);
      else this.#refuse(calls, error);
    }
  }

  close(): void {
    this.#undecided.close();
  }

  #refuse(calls: readonly SubmitCall[], error: unknown): void {
    for (const call of calls) {
      this.#undecided.answered(call);
      call.reject(error);
    }
  }

  async #write(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    if (submissions.length === 0) return [];
    const { link, clock, schema, me, queues, rings } = this.#parts;
    const plain = isPlain(submissions);
    const given = submitArguments(queues, submissions);
    const taker = plain ? this.#takerOf(submissions) : undefined;
    const since = instant(clock);
    try {
      const rows = await link.query(
        "baton_submit",
        `SELECT * FROM ${schema}.submit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
        [me, ...rings.take(), plain, ...given, ...(taker?.values ?? NO_TAKER)],
      );
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
    const { leases, queues } = this.#parts;
    const claims = leases.claims.get(queues.known(first.queue).id);
    return claims === undefined ? undefined : Taker.of(claims, leases);
  }

  #read(
    submissions: readonly Submission[],
    rows: readonly Row[],
    taker: Taker | undefined,
    since: Lease["since"],
  ): readonly SubmitResult[] {
    const { queues, changed, ended } = this.#parts;
    const results: SubmitResult[] = [];
    for (const row of rows) {
      const position = integer(row, 0) - 1;
      const submission = submissions[position];
      if (submission !== undefined) {
        const result = submitResult(queues, submission, row);
        results[position] = result;
        if (result.ok && result.accepted.replaced.length > 0) ended(queues.get(submission.queue).id);
      } else if (position === HANDED_OUT) taker?.take(submissions[0], results[0], row, since);
      else changed(integer(row, 4), integer(row, 1) === 1);
    }
    return results;
  }
}
