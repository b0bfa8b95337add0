/** What engines that send submissions to a program elsewhere have in common. */
import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull, QueueMissing } from "../domain/errors.ts";
import type { Submission } from "./port.ts";

const TERMS = ["queue", "level", "delayMs", "mode", "keyLimit", "queueLimit", "keepMs"] as const;

/** Submissions with the same terms travel together: these are then said once. */
export function haveSameTerms(one: Submission, other: Submission): boolean {
  return one.payload.type === other.payload.type && TERMS.every((name) => one[name] === other[name]);
}

/** Why a submission was not accepted, as the program says it. */
export type RefusalCode = "KEY_BUSY" | "KEY_FULL" | "QUEUE_FULL" | "LEVEL" | "QUEUE";

/** The same, as the port says it. */
export function refusalOf(submission: Submission, code: RefusalCode, levels: readonly string[]): BatonError {
  const { queue, key, level, keyLimit, queueLimit } = submission;
  switch (code) {
    case "KEY_BUSY":
      return new KeyBusy(queue, key);
    case "KEY_FULL":
      return new KeyFull(queue, key, keyLimit);
    case "QUEUE_FULL":
      return new QueueFull(queue, queueLimit);
    case "LEVEL":
      return new InvalidInput("level", level, `one of ${levels.join(", ")}`);
    case "QUEUE":
      return new QueueMissing(queue);
  }
}
