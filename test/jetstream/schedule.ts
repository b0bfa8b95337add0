/** A message that asks to be sent again, to another subject, at a later moment. */
import { ApiError } from "./errors.ts";
import { findHeader, type Header, readHeaders, writeHeaders } from "./headers.ts";
import type { Message } from "./messages.ts";
import { isPattern } from "./subjects.ts";

export interface Schedule {
  readonly atMs: number;
  readonly target: string;
}

const INSTANT = /^@at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))$/;
/** What was meant for the schedule is not for what it sends. */
const OF_SCHEDULE = /^Nats-(Schedule.*|Expected-.*|Rollup|Msg-Id|TTL)$/;

export function readSchedule(
  subject: string,
  fields: readonly Header[],
  { allowed, takes }: { readonly allowed: boolean; readonly takes: (subject: string) => boolean },
): Schedule | undefined {
  const pattern = findHeader(fields, "Nats-Schedule");
  if (pattern === undefined) return undefined;
  if (!allowed) throw new ApiError(400, 10188, "message schedules is disabled");
  const atMs = Date.parse(INSTANT.exec(pattern)?.[1] ?? "");
  if (Number.isNaN(atMs)) throw new ApiError(400, 10189, "message schedules pattern is invalid");
  const target = findHeader(fields, "Nats-Schedule-Target");
  if (target === undefined || isPattern(target) || target === subject || !takes(target)) {
    throw new ApiError(400, 10190, "message schedules target is invalid");
  }
  return { atMs, target };
}

/** The headers of what a schedule sends. */
export function firedHeaders(message: Message): Uint8Array {
  const { fields } = readHeaders(message.headers);
  const ttl = findHeader(fields, "Nats-Schedule-TTL");
  return writeHeaders([
    ...fields.filter(([name]) => !OF_SCHEDULE.test(name)),
    ...(ttl === undefined ? [] : [["Nats-TTL", ttl] as const]),
    ["Nats-Scheduler", message.subject],
    ["Nats-Schedule-Next", "purge"],
  ]);
}
