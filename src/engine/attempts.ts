/**
 * The history of an item: the last few attempts that came to nothing. It is kept with the item, in the write that has to be made anyway, and is
 * bounded in number and in bytes. Stores that keep text keep it as lines of JSON, so that a program inside the store can add one.
 */
import { briefFailure, type Failure } from "../domain/failure.ts";
import type { AttemptReport, Ending, ItemReport } from "./port.ts";

export type Attempts = readonly AttemptReport[];

/** As many as a person reads; with their failures they take about three KiB at most. */
export const MOST_ATTEMPTS = 5;

/** How the line of one that was given back begins: programs inside stores look for it. */
export const RELEASED_LINE = '{"end":"released"';

/** One that was given back did not count: what comes next stands in its place, so that restarts of workers do not push failures out. */
export function addAttempt(before: Attempts, attempt: AttemptReport): Attempts {
  const kept = before.at(-1)?.end === "released" ? before.slice(0, -1) : before;
  return [...kept, attempt].slice(-MOST_ATTEMPTS);
}

/** Which attempt it was, and whose. */
export type Attempt = Pick<AttemptReport, "attempt" | "at" | "worker">;

/** The endings of an attempt that came to nothing. */
export type VainEnding = Extract<Ending, { type: "retry" | "dead" | "release" }>;

export function isVain(ending: Ending): ending is VainEnding {
  return ending.type === "retry" || ending.type === "dead" || ending.type === "release";
}

/** The item is over with it: it is not tried again, and not given back. */
export function endsItem({ type }: Ending): boolean {
  return type !== "retry" && type !== "release";
}

/** The attempt that a settlement has ended so. */
export function attemptOf(ending: VainEnding, { attempt, at, worker }: Attempt): AttemptReport {
  if (ending.type === "release") return { end: "released", attempt, at, worker };
  return { end: "failed", attempt, at, worker, failure: briefFailure(ending.failure) };
}

export function lostAttempt({ attempt, at, worker }: Attempt): AttemptReport {
  return { end: "lost", attempt, at, worker };
}

/** Nothing is to be kept beside that it is done: by far the most settlements are like this. */
export function isSimplyDone(ending: Ending): boolean {
  return ending.type === "done" && ending.result === undefined && ending.resultMissing === undefined;
}

/** What is said of the attempts in a report, an outcome or a dead letter. */
export function withAttempts(attempts: Attempts): { readonly attempts?: Attempts } {
  return attempts.length === 0 ? {} : { attempts };
}

/** What is said of them in the report of an item that lives. */
export function soFar(attempts: Attempts): Pick<ItemReport, "failure" | "attempts"> {
  const failure = lastFailure(attempts);
  return failure === undefined ? withAttempts(attempts) : { failure, attempts };
}

function lastFailure(attempts: Attempts): Failure | undefined {
  return attempts.findLast((attempt) => attempt.failure !== undefined)?.failure;
}

export function writeAttempts(attempts: Attempts): string {
  // The first field says at a glance what was given back.
  return attempts.map(({ end, ...rest }) => JSON.stringify({ end, ...rest })).join("\n");
}

/** Undefined, null or empty: there were none, or the item is of an older version. */
export function readAttempts(written: string | null | undefined): Attempts {
  if (written === undefined || written === null || written === "") return [];
  return written.split("\n").map(readAttempt);
}

function readAttempt(line: string): AttemptReport {
  const value: unknown = JSON.parse(line);
  if (isAttempt(value)) return value;
  throw new TypeError("The store has no attempt where one belongs.");
}

function isAttempt(value: unknown): value is AttemptReport {
  if (typeof value !== "object" || value === null || !("end" in value) || !("attempt" in value)) return false;
  return ["failed", "lost", "released"].includes(String(value.end)) && typeof value.attempt === "number";
}
