import { describeFailure, isFatal, retryAfterMs } from "../domain/failure.ts";
import { bodySize, encodePayload } from "../domain/payload.ts";
import { backoffMs, type RetryPolicy } from "../domain/retry.ts";
import type { Ending } from "../engine/port.ts";
import type { Run } from "./run.ts";

/** How a handler ended: it returned, or it threw. */
export type HandlerEnd = { readonly returned: unknown } | { readonly threw: unknown };

export interface EndingRules {
  readonly retry: RetryPolicy;
  readonly resultLimit: number;
  readonly stopping: boolean;
  readonly random: () => number;
}

/** What becomes of the item. Pure, so that every case can be tested without a worker. */
export function chooseEnding(run: Run, end: HandlerEnd, rules: EndingRules): Ending {
  if ("returned" in end) return endingOfResult(end.returned, rules.resultLimit);
  if (run.cancelled) return { type: "cancelled" };
  // A handler that gave up because the worker stops has not failed.
  if (rules.stopping && run.signal.aborted && !run.timedOut) return { type: "release" };
  const thrown: unknown = run.timedOut && run.signal.aborted ? run.signal.reason : end.threw;
  const failure = describeFailure(thrown);
  const { attempt } = run.grant.item;
  if (isFatal(end.threw) || attempt >= rules.retry.attempts) return { type: "dead", failure };
  const delayMs = retryAfterMs(end.threw) ?? backoffMs(rules.retry, attempt, rules.random);
  return { type: "retry", delayMs, place: rules.retry.place, failure };
}

/** A worker that crashes takes its attempt with it: nobody was left to give the item up. */
export function endingOfExhausted(attempt: number, attempts: number): Ending {
  return {
    type: "dead",
    failure: {
      code: "ATTEMPTS_EXHAUSTED",
      message: `Given up: all ${attempts} attempts ended without an answer (the worker crashed or lost its lease); this would have been attempt ${attempt}.`,
    },
  };
}

function endingOfResult(returned: unknown, resultLimit: number): Ending {
  if (returned === undefined) return { type: "done" };
  try {
    const result = encodePayload(returned);
    if (bodySize(result.body) <= resultLimit) return { type: "done", result };
  } catch {
    // The work is done, and an answer that cannot be carried does not undo it.
  }
  return { type: "done" };
}
