import { DONE, type Outcome, shorten } from "../../outcome.ts";
import type { HttpSettings } from "../../settings.ts";
import type { ReadBody } from "./read-body.ts";
import { retryAfterMs } from "./retry-after.ts";

/** What a receiver answered. */
export interface Reply {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: ReadBody;
}

/** Busy or away: these say when to come again. */
const SAYS_WHEN: ReadonlySet<number> = new Set([429, 503]);
/** The receiver was not there, or nobody stood behind its gateway. A 500 may be the message's own fault. */
const NOT_SERVED: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether the target as a whole seems to be away, which is what a circuit breaker counts. */
export function isUnserved(status: number): boolean {
  return NOT_SERVED.has(status);
}

/** What a reply means. Pure: the table of `docs/relay.md`. */
export function outcomeOf(
  reply: Reply,
  { fatal, replies }: Pick<HttpSettings, "fatal" | "replies">,
  now: number,
): Outcome {
  const { status } = reply;
  const reason = shorten(`The receiver answered ${status}${said(reply.body.text)}`);
  if (fatal.codes.includes(status)) return { type: fatal.action === "drop" ? "drop" : "dead", reason };
  if (status >= 200 && status <= 299) return replies === "status" ? DONE : daprOutcome(reply);
  // Dapr: the route is gone, and the message with it.
  if (replies === "dapr" && status === 404) return { type: "drop", reason };
  const delayMs = SAYS_WHEN.has(status) ? retryAfterMs(reply.retryAfter, now) : undefined;
  return delayMs === undefined ? { type: "retry", reason } : { type: "retry", reason, delayMs };
}

/**
 * As Dapr reads it: nothing, or no JSON, is success; a status that it does not know is tried again. So is an answer of
 * which a part is missing: that part may have said RETRY.
 */
function daprOutcome({ body }: Reply): Outcome {
  if (!body.isWhole)
    return { type: "retry", reason: "The receiver's answer broke off, took too long or is over 64 KiB." };
  const status = daprStatus(body.text);
  switch (status) {
    case undefined:
    case "SUCCESS":
      return DONE;
    case "DROP":
      return { type: "drop", reason: "The receiver answered DROP." };
    case "RETRY":
      return { type: "retry", reason: "The receiver answered RETRY." };
    default:
      return {
        type: "retry",
        reason: shorten(`The receiver answered with a status that Dapr does not know: ${status}`),
      };
  }
}

function daprStatus(body: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  // As Go reads JSON, in which Dapr is written: a name may be in any case.
  const [, status] = Object.entries(value).findLast(([name]) => name.toLowerCase() === "status") ?? [];
  if (status === "" || status === null || status === undefined) return undefined;
  return typeof status === "string" ? status : JSON.stringify(status);
}

function said(body: string): string {
  const text = body.trim().replaceAll(/\s+/g, " ");
  return text === "" ? "." : `: ${text}`;
}
