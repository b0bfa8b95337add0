import { InvalidInput, RetryLater, show } from "../domain/errors.ts";
import { describeFailure, type Failure, isFatal, retryAfterMs } from "../domain/failure.ts";
import { bodySize, encodePayload } from "../domain/payload.ts";
import { backoffMs, type RetryPolicy } from "../domain/retry.ts";
import { cutBytes } from "../domain/utf8.ts";
import type { Ending } from "../engine/port.ts";
import type { HeldItem } from "./held-item.ts";

/** Bytes of what is kept in place of a result. */
const LONGEST_REASON = 300;

/** How a handler ended: it returned, or it threw. */
export type HandlerEnd = { readonly returned: unknown } | { readonly threw: unknown };

export interface EndingRules {
  /** Which attempt of the item this was, of those that count. */
  readonly attempt: number;
  readonly retry: RetryPolicy;
  readonly resultLimit: number;
  readonly stopping: boolean;
  readonly random: () => number;
}

/** What becomes of the item. Pure, so that every case can be tested without a worker. */
export function chooseEnding(held: HeldItem, end: HandlerEnd, rules: EndingRules): Ending {
  if ("returned" in end) return doneWith(end.returned, rules.resultLimit);
  if (held.cancelled) return { type: "cancelled" };
  // A handler that gave up because the worker stops has not failed.
  if (rules.stopping && held.signal.aborted && !held.timedOut) return { type: "release" };
  const thrown: unknown = held.timedOut && held.signal.aborted ? held.signal.reason : end.threw;
  const failure = withoutTime(end.threw, describeFailure(thrown));
  const { attempt } = rules;
  if (isFatal(end.threw) || attempt >= rules.retry.attempts) return { type: "dead", failure };
  const delayMs = retryAfterMs(end.threw) ?? backoffMs(rules.retry, attempt, rules.random);
  return { type: "retry", delayMs, place: rules.retry.place, failure };
}

/** A time that is a mistake must not become the back-off in silence. */
function withoutTime(thrown: unknown, failure: Failure): Failure {
  if (!(thrown instanceof RetryLater) || retryAfterMs(thrown) !== undefined) return failure;
  const said = `${failure.message} (its retryAfter, ${show(thrown.retryAfter)}, is no length of time: the back-off counts)`;
  return { ...failure, message: said };
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

/** The work is done, and an answer that cannot be carried does not undo it; but it is told. */
export function doneWith(returned: unknown, resultLimit: number): Extract<Ending, { type: "done" }> {
  if (returned === undefined) return { type: "done" };
  try {
    const result = encodePayload(returned);
    const size = bodySize(result.body);
    if (size <= resultLimit) return { type: "done", result };
    return {
      type: "done",
      resultMissing: `it has ${size.toLocaleString("en")} bytes, and limits.payload of the queue is ${resultLimit.toLocaleString("en")}`,
    };
  } catch (error) {
    return {
      type: "done",
      resultMissing: cutBytes(`JSON cannot carry it: ${whyNot(returned, error)}`, LONGEST_REASON),
    };
  }
}

/** Of something that belongs to the application, and may be anything. */
function whyNot(returned: unknown, error: unknown): string {
  if (typeof returned === "function" || typeof returned === "symbol") return `it is a ${typeof returned}`;
  if (!(error instanceof InvalidInput)) return describeFailure(error).message;
  // It quotes what JSON said, which may be several lines with a drawing of a circle.
  return typeof error.value === "string" ? error.value.split("\n", 1).join("") : "nothing is left of it";
}
