/** A stream: takes messages under conditions, keeps them until it is told otherwise, and tells its consumers. */
import type { Clock } from "../../src/domain/clock.ts";
import type { Consumer } from "./consumer.ts";
import { Due } from "./due.ts";
import { ApiError, wrongLastSequence } from "./errors.ts";
import type { ServerFaults } from "./faults.ts";
import { nanosToMs, readDurationMs } from "./formats.ts";
import { findHeader, type Header, readHeaders, writeHeaders } from "./headers.ts";
import { type Message, Messages } from "./messages.ts";
import { firedHeaders, readSchedule, type Schedule } from "./schedule.ts";
import type { StreamConfig } from "./stream-config.ts";
import { matches } from "./subjects.ts";

export interface Taken {
  readonly sequence: number;
  readonly duplicate: boolean;
}

export interface Publication {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: Uint8Array | undefined;
}

export interface PurgeRequest {
  readonly filter?: string;
  readonly seq?: number;
  readonly keep?: number;
}

interface Conditions {
  readonly schedule: Schedule | undefined;
  readonly ttlMs: number | undefined;
  readonly rollup: string | undefined;
}

const SHORTEST_TTL_MS = 1_000;

export class Stream {
  config: StreamConfig;
  readonly createdMs: number;
  readonly messages: Messages;
  readonly consumers: Map<string, Consumer> = new Map<string, Consumer>();
  readonly #clock: Clock;
  readonly #faults: () => ServerFaults;
  #replaced: readonly Message[] = [];
  readonly #due: Due;
  readonly #ids = new Map<string, { readonly sequence: number; readonly wallMs: number }>();

  constructor(config: StreamConfig, clock: Clock, faults: () => ServerFaults) {
    this.config = config;
    this.createdMs = clock.wall();
    this.messages = new Messages(() => clock.monotonic());
    this.#clock = clock;
    this.#faults = faults;
    this.#due = new Due(clock);
  }

  takes(subject: string): boolean {
    return this.config.subjects.some((pattern) => matches(pattern, subject));
  }

  /** Throws an ApiError if it does not take the message. */
  take(subject: string, data: Uint8Array, headers: Uint8Array | undefined): Taken {
    const { fields } = readHeaders(headers);
    const conditions = this.#check(subject, fields);
    const id = findHeader(fields, "Nats-Msg-Id");
    const known = id === undefined ? undefined : this.#ids.get(id);
    if (known !== undefined && this.#clock.wall() - known.wallMs < nanosToMs(this.config.duplicate_window)) {
      return { sequence: known.sequence, duplicate: true };
    }
    const rollup = conditions.schedule !== undefined && conditions.rollup === undefined;
    const kept = rollup ? writeHeaders([...fields, ["Nats-Rollup", "sub"]]) : headers;
    const sequence = this.#keep(subject, data, kept, conditions);
    if (id !== undefined) this.#ids.set(id, { sequence, wallMs: this.#clock.wall() });
    return { sequence, duplicate: false };
  }

  /** All of them or, if one is not taken, none; then it throws. Each is checked against what was there before them. */
  takeAll(packets: readonly Publication[]): Taken {
    const checked = packets.map((packet) => ({
      packet,
      conditions: this.#check(packet.subject, readHeaders(packet.headers).fields),
    }));
    const replaced: Message[] = [];
    for (const { packet, conditions } of checked) {
      this.#keep(packet.subject, packet.data, packet.headers, conditions);
      replaced.push(...this.#replaced);
    }
    this.#replaced = replaced;
    return { sequence: this.messages.lastSequence, duplicate: false };
  }

  remove(sequence: number): boolean {
    const removed = this.messages.remove(sequence);
    if (removed === undefined) return false;
    this.#due.cancel(sequence);
    for (const consumer of this.consumers.values()) consumer.onRemoved(removed);
    return true;
  }

  /** How many went. */
  purge({ filter, seq, keep }: PurgeRequest): number {
    const pattern = filter === undefined || filter === "" ? ">" : filter;
    let victims = this.messages.from(0, pattern);
    if (seq !== undefined && seq > 0) victims = victims.filter(({ sequence }) => sequence < seq);
    if (keep !== undefined && keep > 0) victims = victims.slice(0, Math.max(0, victims.length - keep));
    // So does the real one: whoever purges up to a sequence that is not there yet skips it.
    const skipsTo = pattern === ">" ? (seq ?? 0) - 1 : 0;
    this.messages.lastSequence = Math.max(this.messages.lastSequence, skipsTo);
    this.#removeTogether(pattern, victims, pattern === ">" && (keep ?? 0) === 0);
    return victims.length;
  }

  /** What the last message replaced, if that could come back: the real one stores a message first, and then removes those. */
  get replaced(): readonly Message[] {
    return this.#replaced;
  }

  /** A crash forgot that it was removed. */
  revive(message: Message): void {
    if (this.messages.get(message.sequence) === undefined) this.messages.revive(message);
  }

  close(): void {
    this.#due.clear();
    for (const consumer of this.consumers.values()) consumer.close();
  }

  #check(subject: string, fields: readonly Header[]): Conditions {
    const { config, messages } = this;
    const expectedStream = findHeader(fields, "Nats-Expected-Stream");
    if (expectedStream !== undefined && expectedStream !== config.name) {
      throw new ApiError(400, 10060, "expected stream does not match");
    }
    const ttlMs = this.#readTtl(fields);
    const allowed = config.allow_msg_schedules === true;
    const schedule = readSchedule(subject, fields, { allowed, takes: (target) => this.takes(target) });
    const expected = findHeader(fields, "Nats-Expected-Last-Subject-Sequence");
    if (expected !== undefined) {
      const among = findHeader(fields, "Nats-Expected-Last-Subject-Sequence-Subject") ?? subject;
      const last = messages.last(among)?.sequence ?? 0;
      if (expected !== String(last)) throw wrongLastSequence(last);
    }
    const expectedLast = findHeader(fields, "Nats-Expected-Last-Sequence");
    if (expectedLast !== undefined && expectedLast !== String(messages.lastSequence)) {
      throw wrongLastSequence(messages.lastSequence);
    }
    return { schedule, ttlMs, rollup: this.#readRollup(fields) };
  }

  #readTtl(fields: readonly Header[]): number | undefined {
    const text = findHeader(fields, "Nats-TTL");
    if (text === undefined) return undefined;
    if (!this.config.allow_msg_ttl) throw new ApiError(400, 10166, "per-message TTL is disabled");
    if (text === "never") return Infinity;
    const ms = readDurationMs(text);
    if (ms === undefined || ms < SHORTEST_TTL_MS) throw new ApiError(400, 10165, "invalid per-message TTL");
    return Math.floor(ms / 1_000) * 1_000;
  }

  #readRollup(fields: readonly Header[]): string | undefined {
    const rollup = findHeader(fields, "Nats-Rollup");
    if (rollup === undefined) return undefined;
    if (!this.config.allow_rollup_hdrs) throw new ApiError(500, 10111, "rollup not permitted");
    if (rollup !== "sub" && rollup !== "all") {
      throw new ApiError(500, 10111, `rollup value invalid: ${JSON.stringify(rollup)}`);
    }
    return rollup;
  }

  #keep(subject: string, data: Uint8Array, headers: Uint8Array | undefined, conditions: Conditions): number {
    const { messages } = this;
    const sequence = messages.lastSequence + 1;
    // A schedule that something else was sent on top of is not one any more.
    const before = messages.last(subject);
    if (before !== undefined && findHeader(readHeaders(before.headers).fields, "Nats-Schedule") !== undefined) {
      this.#due.cancel(before.sequence);
    }
    const message: Message = { sequence, subject, headers, data, wallMs: this.#clock.wall() };
    messages.add(message);
    const { rollup, schedule } = conditions;
    const replaces = rollup === "all" ? ">" : rollup === "sub" || schedule !== undefined ? subject : undefined;
    const replaced = replaces === undefined ? [] : messages.from(0, replaces).filter((each) => each !== message);
    if (replaces !== undefined) this.#removeTogether(replaces, replaced);
    const isLasting = (each: Message): boolean =>
      findHeader(readHeaders(each.headers).fields, "Nats-TTL") === undefined;
    this.#replaced = replaced.every(isLasting) ? replaced : [];
    this.#enforceLimits(subject);
    this.#plan(message, conditions);
    for (const consumer of this.consumers.values()) consumer.onStored(message);
    return sequence;
  }

  /** @param upTo the pattern is all, and the end is a sequence: consumers count anew, whatever went */
  #removeTogether(pattern: string, removed: readonly Message[], upTo = false): void {
    for (const { sequence } of removed) {
      this.messages.remove(sequence);
      this.#due.cancel(sequence);
    }
    const recounted = removed.length > 1 || (upTo && removed.length > 0);
    for (const consumer of this.consumers.values()) consumer.onPurged({ pattern, removed, recounted });
  }

  #enforceLimits(subject: string): void {
    const { max_msgs: most, max_msgs_per_subject: mostPerSubject } = this.config;
    if (mostPerSubject > 0) {
      for (const { sequence } of this.messages.from(0, subject).slice(0, -mostPerSubject)) this.remove(sequence);
    }
    if (most <= 0) return;
    for (const { sequence } of this.messages.from(0).slice(0, -most)) this.remove(sequence);
  }

  #plan(message: Message, { schedule, ttlMs }: Conditions): void {
    const { sequence, wallMs } = message;
    const lateMs = this.#faults().lateMs();
    if (schedule !== undefined) {
      this.#due.set(sequence, schedule.atMs + lateMs, () => this.#fire(message, schedule));
      return;
    }
    const ageMs = this.config.max_age > 0 ? nanosToMs(this.config.max_age) : Infinity;
    const restMs = ttlMs ?? ageMs;
    if (restMs !== Infinity) this.#due.set(sequence, wallMs + restMs + lateMs, () => void this.remove(sequence));
  }

  #fire(message: Message, { target }: Schedule): void {
    const headers = firedHeaders(message);
    const ttlMs = this.#readTtl(readHeaders(headers).fields);
    this.#keep(target, message.data, headers, { schedule: undefined, ttlMs, rollup: undefined });
    this.remove(message.sequence);
  }
}
