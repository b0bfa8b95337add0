/** Direct gets: one message or many, without the API in between, and possibly from a copy that is behind. */
import type { Sent } from "./consumer.ts";
import { writeTime } from "./formats.ts";
import { type Header, readHeaders, writeHeaders } from "./headers.ts";
import { type Message, type Messages, sizeOf } from "./messages.ts";

interface DirectGet {
  readonly seq?: number;
  readonly last_by_subj?: string;
  readonly next_by_subj?: string;
  readonly batch?: number;
  readonly max_bytes?: number;
  readonly multi_last?: readonly string[];
  readonly up_to_seq?: number;
}

const NOT_FOUND = status(404, "Message Not Found");

/** The last message of a subject, which is in the address. */
export function getLast(stream: string, messages: Messages, subject: string, data: Uint8Array): Sent[] {
  if (data.length > 0) return [status(408, "Bad Request")];
  return [answer(stream, messages.last(subject))];
}

export function get(stream: string, messages: Messages, data: Uint8Array): Sent[] {
  let request: DirectGet;
  try {
    request = data.length === 0 ? {} : (JSON.parse(Buffer.from(data).toString()) as DirectGet);
  } catch {
    return [status(408, "Malformed Request")];
  }
  const { seq = 0, last_by_subj: last, next_by_subj: next, batch = 0, multi_last: multi } = request;
  if (seq === 0 && last === undefined && next === undefined && multi === undefined) {
    return [status(408, "Empty Request")];
  }
  const isMany = batch > 0 || multi !== undefined;
  if (last !== undefined && (seq > 0 || next !== undefined || isMany)) return [status(408, "Bad Request")];
  if (multi !== undefined) return getMulti(stream, messages, request, multi);
  if (batch > 0) {
    const found = messages.from(seq, next);
    return found.length === 0 ? [NOT_FOUND] : getBatch(stream, found, request, []);
  }
  if (last !== undefined) return [answer(stream, messages.last(last))];
  return [answer(stream, next === undefined ? messages.get(seq) : messages.from(seq, next)[0])];
}

function getMulti(stream: string, messages: Messages, request: DirectGet, patterns: readonly string[]): Sent[] {
  const upTo = request.up_to_seq ?? messages.lastSequence;
  const found = messages.lastOfEach(patterns, upTo);
  if (found.length === 0) return [status(404, "No Results")];
  const wanted = found.filter(({ sequence }) => sequence >= (request.seq ?? 0));
  return getBatch(stream, wanted, request, [["Nats-UpTo-Sequence", String(upTo)]]);
}

function getBatch(stream: string, found: readonly Message[], request: DirectGet, more: readonly Header[]): Sent[] {
  const { batch = 0, max_bytes: mostBytes = Infinity } = request;
  const sent: Sent[] = [];
  let [before, bytes] = [0, 0];
  for (const message of batch > 0 ? found.slice(0, batch) : found) {
    if (bytes >= mostBytes) break;
    bytes += sizeOf(message);
    const left = found.length - sent.length - 1;
    sent.push(answer(stream, message, [...place(left, before)]));
    before = message.sequence;
  }
  return [...sent, status(204, "EOB", [...place(found.length - sent.length, before), ...more])];
}

function place(left: number, before: number): Header[] {
  return [
    ["Nats-Num-Pending", String(left)],
    ["Nats-Last-Sequence", String(before)],
  ];
}

function answer(stream: string, message: Message | undefined, more: readonly Header[] = []): Sent {
  if (message === undefined) return NOT_FOUND;
  const fields: Header[] = [
    ...readHeaders(message.headers).fields,
    ["Nats-Stream", stream],
    ["Nats-Subject", message.subject],
    ["Nats-Sequence", String(message.sequence)],
    ["Nats-Time-Stamp", writeTime(message.wallMs)],
    ...more,
  ];
  return { data: message.data, headers: writeHeaders(fields) };
}

function status(code: number, text: string, fields: readonly Header[] = []): Sent {
  return { headers: writeHeaders(fields, code, text) };
}
