/** Kinds of values that a relay's configuration has in several places. */
import { formatDuration, parseDuration } from "../../domain/duration.ts";
import { BatonError } from "../../domain/errors.ts";
import { checkQueueName } from "../../domain/names.ts";
import { isPointer } from "../transforms/json-pointer.ts";
import { convert, type Schema, text } from "./schema.ts";

export const HOUR_MS = 3_600_000;
export const DAY_MS: number = 24 * HOUR_MS;

/** Milliseconds. A bare number would be taken for seconds by one reader and for milliseconds by another. */
export function duration(leastMs: number, mostMs: number): Schema<number> {
  const expected = `a length of time with its unit, such as 30s, from ${formatDuration(leastMs)} to ${formatDuration(mostMs)}`;
  const isRight = (given: string): boolean => {
    const ms = parsed(given);
    return ms !== undefined && ms >= leastMs && ms <= mostMs;
  };
  return convert(text(expected, isRight), (given) => parsed(given) ?? 0);
}

function parsed(given: string): number | undefined {
  return attempt(() => parseDuration(given, "duration"));
}

/** A password would be in logs; a header does the same. */
export const httpUrl: Schema<string> = text(
  "a URL that begins with http:// or https://, without a password",
  (given) => {
    const url = attempt(() => new URL(given));
    return url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  },
);

/** Consul is no such store: it has locks and no queues. */
export const storeUrl: Schema<string> = text(
  "the URL of a Baton store with queues, such as sqlite:work.db, nats://HOST, postgres://HOST/DATABASE or redis://HOST",
  (given) => /^(sqlite|nats|tls|postgres|postgresql|redis|rediss|memory):/i.test(given),
);

export const queueName: Schema<string> = text(
  "the name of a Baton queue: 1 to 64 letters, digits, _ or -, beginning with a letter or digit",
  (given) => attempt(() => checkQueueName(given)) !== undefined,
);

export const jsonPointer: Schema<string> = text("a JSON pointer such as /customer/id", isPointer);

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof BatonError || error instanceof TypeError) return undefined;
    throw error;
  }
}
