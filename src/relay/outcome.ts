/** What a processor makes of one delivery. */
export type Outcome =
  | { readonly type: "done" }
  /** Another attempt, if there is one left; `delayMs` where the receiver said when. */
  | { readonly type: "retry"; readonly reason: string; readonly delayMs?: number }
  /**
   * The application was not reached: not a byte of the message was sent to it. That says nothing of the message, so it
   * goes back without spending an attempt.
   */
  | { readonly type: "unreachable"; readonly target: string; readonly reason: string; readonly delayMs: number }
  /** It was not tried, or broken off by us: it goes back as if it had not been received. */
  | { readonly type: "back"; readonly reason: string; readonly delayMs: number }
  | { readonly type: "dead"; readonly reason: string }
  | { readonly type: "drop"; readonly reason: string };

/** What happens to the message: an outcome after the limits of its source were looked at. */
export type Verdict = Exclude<Outcome, { readonly type: "retry" }> | RetryVerdict;

export interface RetryVerdict {
  readonly type: "retry";
  readonly reason: string;
  readonly delayMs: number;
}

export const DONE: Outcome = { type: "done" };

/** Reasons end up in logs and dead letters: one line, and not the receiver's whole page. */
const LONGEST_REASON = 500;

export function shorten(reason: string): string {
  return reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON)}…`;
}
