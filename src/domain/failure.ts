import { isError } from "./realms.ts";
import { type Duration, parseDuration } from "./duration.ts";
import { cutBytes, cutMiddle } from "./utf8.ts";

/** Why an attempt failed, in a form that every store can keep. */
export interface Failure {
  /** What the error said, and behind it what its causes said: `fetch failed: connect ECONNREFUSED 127.0.0.1:9`. */
  readonly message: string;
  /** The error's own, or else that of the nearest cause that has one. */
  readonly code?: string;
  readonly stack?: string;
  /** What led to it, the nearest first; of an `AggregateError` each of its errors. */
  readonly causes?: readonly FailureCause[];
}

/** An error behind the one that was thrown. */
export interface FailureCause {
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

/** Bytes of UTF-8. A stack trace that says where is worth keeping; one that fills the store is not. */
const LONGEST_MESSAGE = 2_000;
const LONGEST_STACK = 4_000;
const LONGEST_CODE = 200;
/** Of one cause. */
const LONGEST_CAUSE = 500;
/** Of the stacks of all causes together; a cause that is left without one still says what it was. */
const LONGEST_CAUSE_STACKS = 2_000;
/** A chain that is longer than this goes in a circle, or was made by a loop. */
const DEEPEST = 5;
/** More errors than this say the same again. */
const MOST_CAUSES = 8;
/** Of a failure as the history of attempts has it: a line of a table. */
const LONGEST_BRIEF = 500;

/** Whatever a handler threw: an Error, a string, nothing at all. */
export function describeFailure(thrown: unknown): Failure {
  if (!isError(thrown)) return { message: cutBytes(describeNonError(thrown), LONGEST_MESSAGE) };
  const found: Found = { causes: [], left: 0, seen: new Set([thrown]) };
  const behind = saidBehind(thrown, 1, found);
  const { causes, left } = found;
  const code = codeOf(thrown) ?? causes.find((cause) => cause.code !== undefined)?.code;
  const stack = property(thrown, "stack");
  return {
    message: joined(messageOf(thrown, behind !== ""), behind),
    ...(code === undefined ? {} : { code }),
    ...(typeof stack === "string" ? { stack: cutBytes(stack, LONGEST_STACK) } : {}),
    ...(causes.length === 0 ? {} : { causes: withinBounds(causes, left) }),
  };
}

/** A failure on one line or two, for the history of attempts. */
export function briefFailure({ message, code }: Failure): Failure {
  const brief = { message: cutMiddle(message, LONGEST_BRIEF) };
  return code === undefined ? brief : { ...brief, code: cutBytes(code, LONGEST_CODE) };
}

/** An error with `fatal: true`, of whatever class, is not worth a second attempt. */
export function isFatal(thrown: unknown): boolean {
  if (!isError(thrown)) return false;
  return property(thrown, "fatal") === true || property(thrown, "code") === "FATAL";
}

/** An error may say when to try again by a `retryAfter` of any form a duration has; a bad one is ignored. */
export function retryAfterMs(thrown: unknown): number | undefined {
  if (!isError(thrown)) return undefined;
  const wish = property(thrown, "retryAfter");
  if (!isDuration(wish)) return undefined;
  try {
    return parseDuration(wish, "retryAfter");
  } catch {
    return undefined;
  }
}

interface Found {
  readonly causes: FailureCause[];
  /** Causes that there was no room for. */
  left: number;
  /** An error that is its own cause is told once. */
  readonly seen: Set<unknown>;
}

/** Notes what led to an error, and returns what all of that said. */
function saidBehind(error: Error, depth: number, found: Found): string {
  const errors = property(error, "errors");
  const said = Array.isArray(errors) ? errors.map((one: unknown) => saidBy(one, depth, found)) : [];
  const list = [...new Set(said.filter((text) => text !== ""))].join("; ");
  const cause = property(error, "cause");
  return joined(list, cause === undefined ? "" : saidBy(cause, depth, found));
}

function saidBy(thrown: unknown, depth: number, found: Found): string {
  if (found.seen.has(thrown)) return "";
  if (depth > DEEPEST || found.causes.length >= MOST_CAUSES) {
    found.left += 1;
    return "";
  }
  found.seen.add(thrown);
  if (!isError(thrown)) {
    const message = cutBytes(typeof thrown === "string" ? thrown : shown(thrown), LONGEST_CAUSE);
    found.causes.push({ message });
    return message;
  }
  const place = found.causes.push({ message: "" }) - 1;
  const behind = saidBehind(thrown, depth + 1, found);
  const message = cutBytes(messageOf(thrown, behind !== ""), LONGEST_CAUSE);
  const code = codeOf(thrown);
  const stack = property(thrown, "stack");
  found.causes[place] = {
    message: message === "" ? nameOf(thrown) : message,
    ...(code === undefined ? {} : { code }),
    ...(typeof stack === "string" ? { stack } : {}),
  };
  return joined(message, behind);
}

function withinBounds(causes: readonly FailureCause[], left: number): readonly FailureCause[] {
  let room = LONGEST_CAUSE_STACKS;
  const bounded = causes.map(({ stack, ...cause }): FailureCause => {
    if (stack === undefined) return cause;
    if (room <= 0) return cause;
    const kept = cutBytes(stack, room);
    room -= Buffer.byteLength(kept);
    return { ...cause, stack: kept };
  });
  return left === 0 ? bounded : [...bounded, { message: `… and ${left} more` }];
}

/** Libraries repeat the message of a cause in their own: that is not said twice. */
function joined(first: string, behind: string): string {
  const text = first === "" || behind === "" || first.includes(behind) ? first || behind : `${first}: ${behind}`;
  return cutBytes(text, LONGEST_MESSAGE);
}

/** Errors are other people's objects: their fields may be anything, or throw. */
function property(thrown: Error, name: string): unknown {
  try {
    return Reflect.get(thrown, name);
  } catch {
    return undefined;
  }
}

function codeOf(thrown: Error): string | undefined {
  const code = property(thrown, "code");
  if (typeof code !== "string" && typeof code !== "number") return undefined;
  return cutBytes(String(code), LONGEST_CODE);
}

/** An error that says nothing itself leaves it to its causes, as that of a connection that was tried at several addresses. */
function messageOf(thrown: Error, hasCauses: boolean): string {
  const message = property(thrown, "message");
  if (typeof message === "string" && message !== "") return message;
  return hasCauses ? "" : nameOf(thrown);
}

function nameOf(thrown: Error): string {
  const name = property(thrown, "name");
  return typeof name === "string" && name !== "" ? name : "An error without a message.";
}

function isDuration(value: unknown): value is Duration {
  return typeof value === "number" || typeof value === "string";
}

function describeNonError(thrown: unknown): string {
  return typeof thrown === "string" ? thrown : `The handler threw ${shown(thrown)}, which is not an Error.`;
}

function shown(thrown: unknown): string {
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return "something";
  }
}
