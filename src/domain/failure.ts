import { type Duration, parseDuration } from "./duration.ts";

/** Why an attempt failed, in a form that every store can keep. */
export interface Failure {
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

/** A stack trace that says where is worth keeping; one that fills the store is not. */
const LONGEST_MESSAGE = 2_000;
const LONGEST_STACK = 4_000;

/** Whatever a handler threw: an Error, a string, nothing at all. */
export function describeFailure(thrown: unknown): Failure {
  if (!(thrown instanceof Error)) return { message: cut(describeNonError(thrown), LONGEST_MESSAGE) };
  const code: unknown = Reflect.get(thrown, "code");
  return {
    message: cut(thrown.message === "" ? thrown.name : thrown.message, LONGEST_MESSAGE),
    ...(typeof code === "string" || typeof code === "number" ? { code: cut(String(code), 200) } : {}),
    ...(thrown.stack === undefined ? {} : { stack: cut(thrown.stack, LONGEST_STACK) }),
  };
}

/** An error with `fatal: true`, of whatever class, is not worth a second attempt. */
export function isFatal(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return Reflect.get(thrown, "fatal") === true || Reflect.get(thrown, "code") === "FATAL";
}

/** An error may say when to try again by a `retryAfter` of any form a duration has; a bad one is ignored. */
export function retryAfterMs(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const wish: unknown = Reflect.get(thrown, "retryAfter");
  if (!isDuration(wish)) return undefined;
  try {
    return parseDuration(wish, "retryAfter");
  } catch {
    return undefined;
  }
}

function isDuration(value: unknown): value is Duration {
  return typeof value === "number" || typeof value === "string";
}

function describeNonError(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    return `The handler threw ${JSON.stringify(thrown) ?? String(thrown)}, which is not an Error.`;
  } catch {
    return "The handler threw something that is not an Error.";
  }
}

function cut(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}…`;
}
