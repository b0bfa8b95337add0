import type { Lease, Submission, SubmitResult } from "../../engine/port.ts";
import { columnsOf, payloadOf } from "./bodies.ts";
import type { QueueClaims, WaitingClaim } from "./claims.ts";
import type { Leases } from "./leases.ts";
import type { Row } from "./link.ts";
import { integer, text } from "./rows.ts";

/** The arguments of a submission that nobody here waits for. */
export const NO_TAKER: readonly unknown[] = [null, 0, false];

/**
 * Somebody who waits for work of a queue while an item of it is submitted in the same process. If nothing else waits in the queue, the store hands the
 * item out as it writes it, with one commit in place of two; if something does, or the queue is paused, the next step looks, as ever.
 */
export class Taker {
  readonly #claims: QueueClaims;
  readonly #claim: WaitingClaim;
  readonly #leases: Leases;
  /** With it nobody here sleeps any more. */
  readonly #isLast: boolean;

  private constructor(claims: QueueClaims, claim: WaitingClaim, leases: Leases) {
    this.#claims = claims;
    this.#claim = claim;
    this.#leases = leases;
    this.#isLast = claims.size === 1;
    claim.looking = true;
  }

  /** Only where they sleep: whoever does not is about to look. */
  static of(claims: QueueClaims, leases: Leases): Taker | undefined {
    const { first } = claims;
    if (first === undefined || !claims.asleep || first.looking || first.request.signal.aborted) return undefined;
    return new Taker(claims, first, leases);
  }

  get values(): readonly unknown[] {
    const { worker, leaseMs } = this.#claim.request;
    return [worker, Math.ceil(leaseMs), this.#isLast];
  }

  /** The item was handed out. */
  take(submission: Submission | undefined, result: SubmitResult | undefined, row: Row, since: Lease["since"]): void {
    if (submission === undefined || result?.ok !== true)
      throw new Error("The store handed out what it did not accept.");
    const { type, text: body, bytes } = columnsOf(submission.payload);
    const { id, level, at } = result.accepted;
    const { queue, key, headers } = submission;
    const lease = { queue, key, fence: integer(row, 5), since, handle: Number(text(row, 3)) };
    const payload = payloadOf(type, body, bytes);
    const item = { id, queue, key, level, payload, headers, submittedAt: at, attempt: 1 };
    if (this.#isLast) this.#claims.wakeUp();
    this.#leases.answer(this.#claims, this.#claim, [{ lease, item }]);
  }

  /** Nobody knows what became of the statement: the mark that somebody sleeps may be gone, and whoever does has to look for himself. */
  fail(): void {
    this.#claims.wakeUp();
  }

  /** The statement is over. Whoever gave up meanwhile was not let go. */
  leave(): void {
    this.#claim.looking = false;
    const isWanted = !this.#claim.request.signal.aborted && !this.#leases.isClosed;
    if (isWanted || !this.#claims.has(this.#claim)) return;
    this.#claims.remove(this.#claim);
    this.#claim.resolve([]);
  }
}
