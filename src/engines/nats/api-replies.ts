/** What a server answers: values, and errors by their codes. */
import { BatonError } from "../../domain/errors.ts";
import { ownJson, textOfBytes } from "./own-json.ts";
import { Lost, Unserved } from "./requests.ts";
import type { Delivery } from "./wire.ts";

export interface Stored {
  readonly subject: string;
  readonly sequence: number;
  readonly at: number;
  readonly data: Uint8Array;
}

/** What a compare-and-swap found instead of what it expected. */
export interface Refused {
  readonly refused: true;
}

export type PutResult = { readonly refused: false; readonly sequence: number } | Refused;

export class ApiError extends BatonError {
  readonly number: number;

  constructor(subject: string, number: number, description: string) {
    const isFull = NO_ROOM.has(number);
    const advice = isFull
      ? "What was accepted before is safe. Give the stream, the account or the disk more room; work goes on by itself then."
      : "See docs/engines/nats.md.";
    super(
      isFull ? "STORE_FULL" : "STORE_UNAVAILABLE",
      `The NATS server refused ${subject}: ${description} (${number}). Nothing was changed by it. ${advice}`,
    );
    this.number = number;
  }
}

export interface ApiReply {
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description?: string };
}

const REFUSED: Refused = { refused: true };
/** Wrong last sequence, and the same found before it was written. */
const WRONG_LAST = new Set([10_071, 10_164]);
export const NO_MESSAGE: ReadonlySet<number> = new Set([10_037, 10_043, 10_057]);
export const NO_STREAM = 10_059;
export const NO_CONSUMER = 10_014;
export const STREAM_EXISTS = 10_058;
export const CONSUMER_EXISTS = 10_148;
/** What is to be removed, or the whole stream. */
export const GONE: ReadonlySet<number> = new Set([...NO_MESSAGE, NO_STREAM]);
/** The server, the account or the stream has no room left; 10,077 also for what a full disk makes fail. */
const NO_ROOM = new Set([10_002, 10_023, 10_028, 10_047, 10_077]);
/** The server or the stream's leader is not there for the moment. */
export const NOT_NOW: ReadonlySet<number> = new Set([10_008, 10_009]);

export interface MessageLine {
  readonly subject: string;
  readonly seq: number;
  readonly time: string;
  readonly data?: string;
}

export function putResultOf(subject: string, reply: Delivery): PutResult {
  const sequence = sequenceOf(reply.data);
  if (sequence !== undefined) return { refused: false, sequence };
  if (reply.status === 503) throw new Unserved(subject);
  const answer = ownJson<ApiReply & { readonly seq: number }>(textOfBytes(reply.data));
  if (answer.error === undefined) return { refused: false, sequence: answer.seq };
  const number = answer.error.err_code ?? answer.error.code;
  if (WRONG_LAST.has(number)) return REFUSED;
  if (NOT_NOW.has(number)) throw new Lost(subject);
  throw new ApiError(subject, number, answer.error.description ?? "");
}

/** The sequence of the last one of a batch. Undefined: nothing of it was stored. */
export function batchResultOf(count: number, reply: Delivery): number | undefined | "unknown" {
  // Nobody serves it.
  if (reply.status === 503) return undefined;
  const answer = batchAnswerOf(reply);
  if (answer.error === undefined && answer.count === count) return answer.seq;
  // It was found wanting before anything was written. Of any other trouble it is not known how far it came.
  return answer.error?.code === 400 ? undefined : "unknown";
}

function batchAnswerOf({ data }: Delivery): ApiReply & { readonly seq?: number; readonly count?: number } {
  try {
    return ownJson(textOfBytes(data));
  } catch {
    return {};
  }
}

const STORED = Buffer.from('{"stream":"');
const SEQUENCE = Buffer.from('","seq":');
const ZERO = 0x30;

/** The sequence in the usual answer to a write, which comes so often that JSON would be felt. Undefined: it is another answer. */
function sequenceOf(data: Uint8Array): number | undefined {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < STORED.length; at += 1) if (bytes[at] !== STORED[at]) return undefined;
  const found = bytes.indexOf(SEQUENCE, STORED.length);
  if (found === -1) return undefined;
  let sequence = 0;
  for (let at = found + SEQUENCE.length; ; at += 1) {
    const digit = (bytes[at] ?? 0) - ZERO;
    if (digit < 0 || digit > 9) return sequence === 0 ? undefined : sequence;
    sequence = sequence * 10 + digit;
  }
}

/** Nobody listens, or the server gives no reason: the same as no reply, but known at once. */
export function unanswered(subject: string, reply: Delivery): Error {
  if (reply.status === 503 || reply.status === 408) return new Lost(subject);
  return new ApiError(subject, reply.status, reply.description);
}

export function storedOf(reply: Delivery): Stored {
  return {
    subject: reply.header("Nats-Subject") ?? "",
    sequence: Number(reply.header("Nats-Sequence") ?? 0),
    at: Date.parse(reply.header("Nats-Time-Stamp") ?? ""),
    data: reply.data,
  };
}
