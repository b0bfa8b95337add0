/** The part of the API that is about streams and what is in them. */
import { ApiError, badRequest, noMessage } from "./errors.ts";
import { NO_TIME, writeTime } from "./formats.ts";
import type { Message } from "./messages.ts";
import type { PurgeRequest, Stream } from "./stream.ts";

const PAGE = 100_000;

interface InfoRequest {
  readonly subjects_filter?: string;
  readonly offset?: number;
  readonly deleted_details?: boolean;
}

interface GetRequest {
  readonly seq?: number;
  readonly last_by_subj?: string;
  readonly next_by_subj?: string;
}

export function describeStream(stream: Stream, nowMs: number, request: InfoRequest = {}): object {
  const { messages } = stream;
  const { offset = 0, subjects_filter: filter } = request;
  const counts = filter === undefined ? [] : messages.countBySubject(filter);
  const page = counts.slice(offset, offset + PAGE);
  const first = messages.count === 0 ? undefined : messages.get(messages.firstSequence);
  const deleted = first === undefined ? 0 : messages.lastSequence - messages.firstSequence + 1 - messages.count;
  const paging =
    counts.length === 0 ? { total: 0, offset: 0, limit: 0 } : { total: counts.length, offset, limit: PAGE };
  return {
    ...paging,
    config: stream.config,
    created: writeTime(stream.createdMs),
    state: {
      messages: messages.count,
      bytes: messages.bytes,
      first_seq: messages.firstSequence,
      first_ts: first === undefined ? NO_TIME : writeTime(first.wallMs),
      last_seq: messages.lastSequence,
      last_ts: messages.lastMs === undefined ? NO_TIME : writeTime(messages.lastMs),
      ...(messages.subjectCount > 0 ? { num_subjects: messages.subjectCount } : {}),
      ...(page.length > 0 ? { subjects: Object.fromEntries(page) } : {}),
      ...(deleted > 0 ? { num_deleted: deleted } : {}),
      ...(deleted > 0 && request.deleted_details === true ? { deleted: listDeleted(stream) } : {}),
      consumer_count: stream.consumers.size,
    },
    ts: writeTime(nowMs),
  };
}

export function purgeStream(stream: Stream, request: PurgeRequest): object {
  const { seq = 0, keep = 0 } = request;
  if (seq > 0 && keep > 0) throw badRequest();
  return { success: true, purged: stream.purge(request) };
}

export function deleteMessage(stream: Stream, request: { readonly seq?: number }): object {
  const { seq = 0 } = request;
  if (Object.keys(request).length === 0) throw badRequest();
  // Three ways of not being there: not any more, not yet, and in the middle.
  if (seq < stream.messages.firstSequence || seq === 0) throw new ApiError(500, 10057, "no message found");
  if (seq > stream.messages.lastSequence) throw new ApiError(500, 10057, "stream store EOF");
  if (!stream.remove(seq)) throw new ApiError(400, 10043, `sequence ${seq} not found`);
  return { success: true };
}

export function getMessage(stream: Stream, request: GetRequest): object {
  const { seq = 0, last_by_subj: last, next_by_subj: next } = request;
  if (seq === 0 && last === undefined && next === undefined) throw badRequest();
  if (last !== undefined && (seq > 0 || next !== undefined)) throw badRequest();
  const message = find(stream, seq, last, next);
  if (message === undefined) throw noMessage();
  const { subject, sequence, headers, data, wallMs } = message;
  return {
    message: {
      subject,
      seq: sequence,
      ...(headers === undefined ? {} : { hdrs: Buffer.from(headers).toString("base64") }),
      ...(data.length === 0 ? {} : { data: Buffer.from(data).toString("base64") }),
      time: writeTime(wallMs),
    },
  };
}

function find({ messages }: Stream, sequence: number, last?: string, next?: string): Message | undefined {
  if (last !== undefined) return messages.last(last);
  return next === undefined ? messages.get(sequence) : messages.from(sequence, next)[0];
}

function listDeleted({ messages }: Stream): number[] {
  const deleted: number[] = [];
  for (let sequence = messages.firstSequence; sequence <= messages.lastSequence; sequence += 1) {
    if (messages.get(sequence) === undefined) deleted.push(sequence);
  }
  return deleted;
}
