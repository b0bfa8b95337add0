import { formatDuration } from "../../domain/duration.ts";
import { backoffMs } from "../../domain/retry.ts";
import type { Outcome, Verdict } from "../outcome.ts";
import type { RelayRetry } from "../settings.ts";

/**
 * What becomes of a message. Pure, so that every case can be tested without a relay.
 *
 * @param ageMs since the message was put in its queue; undefined where the queue does not say
 */
export function judge(
  outcome: Outcome,
  attempt: number,
  retry: RelayRetry,
  random: () => number,
  ageMs?: number,
): Verdict {
  if (outcome.type !== "retry" && outcome.type !== "unreachable") return outcome;
  const { reason } = outcome;
  const { maxAgeMs = Infinity } = retry;
  if (ageMs !== undefined && ageMs >= maxAgeMs)
    return { type: "dead", reason: `Given up because it is older than ${formatDuration(maxAgeMs)}: ${reason}` };
  if (outcome.type === "unreachable") return outcome;
  if (attempt >= retry.attempts) return { type: "dead", reason: `Given up after attempt ${attempt}: ${reason}` };
  const delayMs = outcome.delayMs ?? backoffMs({ ...retry, place: "yield" }, attempt, random);
  return { type: "retry", reason, delayMs };
}
