/** What became of submissions, as the port says it. */
import type { Submission, SubmitResult } from "../../engine/port.ts";
import { refusalOf } from "../../engine/submissions.ts";
import { levelOf, list, milliseconds, text, texts } from "./replies.ts";

const NOTHING: readonly string[] = [];

/** A number: accepted. A list begins with what else it is. */
export function readSubmitted(
  submission: Submission,
  answer: unknown,
  now: number,
  levels: readonly string[],
): SubmitResult {
  if (typeof answer === "string") return accepted(submission, answer, now, NOTHING);
  const [mark, ...rest] = list(answer);
  switch (mark) {
    case "R":
      return accepted(submission, text(rest[0]), now, texts(rest.slice(1)));
    case "D": {
      const [first, rank, at] = rest;
      const found = { id: submission.id ?? "", key: text(first), level: levelOf(levels, rank), at: milliseconds(at) };
      return { ok: true, accepted: { ...found, duplicate: true, replaced: NOTHING } };
    }
    case "KEY_BUSY":
    case "KEY_FULL":
    case "QUEUE_FULL":
    case "LEVEL":
      return { ok: false, error: refusalOf(submission, mark, levels) };
    default:
      throw new TypeError("Redis answered to a submission with something else than what became of it.");
  }
}

function accepted({ id, key, level }: Submission, seq: string, at: number, replaced: readonly string[]): SubmitResult {
  return { ok: true, accepted: { id: id ?? `@${seq}`, key, level, at, duplicate: false, replaced } };
}
