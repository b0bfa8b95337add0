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
  const code = property(thrown, "code");
  const stack = property(thrown, "stack");
  return {
    message: cut(messageOf(thrown), LONGEST_MESSAGE),
    ...(typeof code === "string" || typeof code === "number" ? { code: cut(String(code), 200) } : {}),
    ...(typeof stack === "string" ? { stack: cut(stack, LONGEST_STACK) } : {}),
  };
}

/** An error with `fatal: true`, of whatever class, is not worth a second attempt. */
export function isFatal(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return property(thrown, "fatal") === true || property(thrown, "code") === "FATAL";
}

/** An error may say when to try again by a `retryAfter` of any form a duration has; a bad one is ignored. */
export function retryAfterMs(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const wish = property(thrown, "retryAfter");
  if (!isDuration(wish)) return undefined;
  try {
    return parseDuration(wish, "retryAfter");
  } catch {
    return undefined;
  }
}

/** Errors are other people's objects: their fields may be anything, or throw. */
function property(thrown: Error, name: string): unknown {
  try {
    return Reflect.get(thrown, name);
  } catch {
    return undefined;
  }
}

function messageOf(thrown: Error): string {
  const written = [property(thrown, "message"), property(thrown, "name")];
  return (
    written.find((text): text is string => typeof text === "string" && text !== "") ?? "An error without a message."
  );
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
