/** What became of submissions, as the port says it. */
import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import type { Submission, SubmitResult } from "../../engine/port.ts";
import { levelOf, list, milliseconds, text, texts } from "./replies.ts";

const NOTHING: readonly string[] = [];

/** A number: accepted. A list begins with what else it is. */
export function readSubmitted(
  submission: Submission,
  answer: unknown,
  now: number,
  levels: readonly string[],
): SubmitResult {
  const { queue, key, level } = submission;
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
      return refused(new KeyBusy(queue, key));
    case "KEY_FULL":
      return refused(new KeyFull(queue, key, submission.keyLimit));
    case "QUEUE_FULL":
      return refused(new QueueFull(queue, submission.queueLimit));
    default:
      return refused(new InvalidInput("level", level, `one of ${levels.join(", ")}`));
  }
}

function accepted({ id, key, level }: Submission, seq: string, at: number, replaced: readonly string[]): SubmitResult {
  return { ok: true, accepted: { id: id ?? `@${seq}`, key, level, at, duplicate: false, replaced } };
}

function refused(error: BatonError): SubmitResult {
  return { ok: false, error };
}
