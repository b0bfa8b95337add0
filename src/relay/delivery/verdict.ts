import { backoffMs } from "../../domain/retry.ts";
import type { Outcome, Verdict } from "../outcome.ts";
import type { RelayRetry } from "../settings.ts";

/** What becomes of a message. Pure, so that every case can be tested without a relay. */
export function judge(outcome: Outcome, attempt: number, retry: RelayRetry, random: () => number): Verdict {
  if (outcome.type !== "retry") return outcome;
  const { reason } = outcome;
  if (attempt >= retry.attempts) return { type: "dead", reason: `Given up after attempt ${attempt}: ${reason}` };
  const delayMs = outcome.delayMs ?? backoffMs({ ...retry, place: "yield" }, attempt, random);
  return { type: "retry", reason, delayMs };
}
