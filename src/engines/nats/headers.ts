/** Header blocks, built by hand: the client's own header objects cost more than the rest of a publish. */
const START = "NATS/1.0\r\n";
const END = "\r\n";

export interface PutOptions {
  /** The write happens only if this is the sequence of the last message on `check` (0: there is none). */
  readonly expect?: number;
  readonly check?: string;
  /** Older messages on the same subject are removed in the same step. */
  readonly rollup?: boolean;
  /** Whole seconds, at least 1: the server rounds down. */
  readonly ttlSeconds?: number;
  /** A second write with the same name is dropped, within the stream's window. */
  readonly name?: string;
  /** Not stored as such: at that time the server publishes it to `target`. */
  readonly schedule?: { readonly at: number; readonly target: string };
}

/** A place among writes that are stored together or not at all. */
export interface BatchPlace {
  readonly id: string;
  /** From 1. */
  readonly number: number;
  readonly isLast: boolean;
}

export function putHeaders(
  { expect, check, rollup, ttlSeconds, name, schedule }: PutOptions,
  batch?: BatchPlace,
): string | undefined {
  let block = "";
  if (batch !== undefined) {
    block += `Nats-Batch-Id: ${batch.id}\r\nNats-Batch-Sequence: ${batch.number}\r\n`;
    if (batch.isLast) block += "Nats-Batch-Commit: 1\r\n";
  }
  if (expect !== undefined) block += `Nats-Expected-Last-Subject-Sequence: ${expect}\r\n`;
  if (check !== undefined) block += `Nats-Expected-Last-Subject-Sequence-Subject: ${check}\r\n`;
  if (rollup === true) block += "Nats-Rollup: sub\r\n";
  if (ttlSeconds !== undefined) block += `Nats-TTL: ${ttlSeconds}s\r\n`;
  if (name !== undefined) block += `Nats-Msg-Id: ${name}\r\n`;
  if (schedule !== undefined) {
    block += `Nats-Schedule: @at ${new Date(schedule.at).toISOString()}\r\nNats-Schedule-Target: ${schedule.target}\r\n`;
  }
  return block === "" ? undefined : START + block + END;
}
