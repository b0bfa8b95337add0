import { InvalidInput } from "./errors.ts";

/** The longest key: its base64url must fit, with a prefix, into one NATS subject and one index entry. */
const LONGEST_KEY_BYTES = 512;
const LONGEST_ID_BYTES = 512;
const QUEUE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const LEVEL_NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** An id that an engine gave starts with this, so that it never meets one that a user chose. */
export const ASSIGNED_ID_MARK = "@";

export function checkQueueName(value: string, field = "queue"): string {
  if (typeof value === "string" && QUEUE_NAME.test(value)) return value;
  throw new InvalidInput(field, value, "1 to 64 letters, digits, _ or -, beginning with a letter or digit");
}

export function checkLevelName(value: string, field = "level"): string {
  if (typeof value === "string" && LEVEL_NAME.test(value)) return value;
  throw new InvalidInput(field, value, "1 to 32 lower-case letters, digits or -, beginning with a letter");
}

export function checkKey(value: string, field = "key"): string {
  return checkText(value, field, LONGEST_KEY_BYTES);
}

/** An id that the submitter chose. */
export function checkId(value: string, field = "id"): string {
  if (typeof value === "string" && value.startsWith(ASSIGNED_ID_MARK)) {
    throw new InvalidInput(
      field,
      value,
      `an id that does not begin with ${ASSIGNED_ID_MARK} (such ids are given by the store)`,
    );
  }
  return checkText(value, field, LONGEST_ID_BYTES);
}

/** An id, or a key, that is only looked for: whatever it is, it must be a text. */
export function checkReference(value: string, field: string): string {
  return checkText(value, field, LONGEST_ID_BYTES);
}

/** One safe token for a key: no separator, wildcard or case folding of any store can touch it. */
export function encodeKey(key: string): string {
  return Buffer.from(key, "utf8").toString("base64url");
}

export function decodeKey(token: string): string {
  return Buffer.from(token, "base64url").toString("utf8");
}

function checkText(value: string, field: string, longestBytes: number): string {
  const rule = `a non-empty text of at most ${longestBytes} bytes of UTF-8, without NUL or lone surrogates`;
  if (typeof value !== "string" || value.length === 0 || value.length > longestBytes)
    throw new InvalidInput(field, value, rule);
  // A lone surrogate has no UTF-8 form: two different keys would become one.
  if (!value.isWellFormed() || value.includes("\0")) throw new InvalidInput(field, value, rule);
  if (value.length * 3 > longestBytes && Buffer.byteLength(value) > longestBytes)
    throw new InvalidInput(field, value, rule);
  return value;
}
