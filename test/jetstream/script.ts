/** What can be asked of a server, and scripts of it drawn at random: few subjects, so that much happens to each. */
import type { Random } from "../kit/random.ts";
import type { Header } from "./headers.ts";

export interface Publish {
  readonly kind: "publish";
  readonly subject: string;
  readonly data: string;
  readonly headers?: readonly Header[];
  /** The last among these subjects, its own if none are named, and how far off that is. */
  readonly expect?: { readonly among?: string; readonly off: number };
  readonly scheduleInMs?: number;
}

export type Step =
  | Publish
  /** `without`: one that does not come, if there are so many. */
  | { readonly kind: "batch"; readonly id: string; readonly publishes: readonly Publish[]; readonly without: number }
  /** `many`: how many messages the answer has, unless it ends with a status. */
  | { readonly kind: "api"; readonly subject: string; readonly body?: object; readonly many?: number }
  | { readonly kind: "pull"; readonly stream: string; readonly consumer: string; readonly batch: number }
  | { readonly kind: "settle"; readonly which: number; readonly how: string; readonly forget: boolean }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "pause"; readonly stream: string; readonly consumer: string; readonly ms: number }
  | { readonly kind: "listen"; readonly subject: string; readonly body: object };

/** One that keeps what is not acknowledged, one that keeps all. */
const STREAMS = ["W", "L"] as const;
const WORDS = ["a", "b", "c.x", "c.y"] as const;
const PATTERNS = [">", "*", "c.*", "a", "c.x", "none"] as const;
const CONSUMERS = { W: ["all"], L: ["some", "one"] } as const;
const MANY = 1_000;

export function setUp(): Step[] {
  return [
    ...createStreams(),
    createConsumer("W", "all", "W.>"),
    createConsumer("L", "some", "L.c.*"),
    createConsumer("L", "one", "L.a"),
  ];
}

export function createStreams(): Step[] {
  const options = {
    allow_direct: true,
    allow_rollup_hdrs: true,
    allow_msg_ttl: true,
    allow_msg_schedules: true,
    allow_atomic: true,
  };
  const stream = (name: string, retention: string): Step => ({
    kind: "api",
    subject: `STREAM.CREATE.${name}`,
    body: { name, subjects: [`${name}.>`], retention, ...options },
  });
  return [stream("W", "workqueue"), stream("L", "limits")];
}

export function tearDown(): Step[] {
  return STREAMS.map((name) => ({ kind: "api", subject: `STREAM.DELETE.${name}` }));
}

export function createConsumer(stream: string, name: string, filter: string, more: object = {}): Step {
  const config = { name, durable_name: name, filter_subject: filter, ack_policy: "explicit", ack_wait: 30e9, ...more };
  return { kind: "api", subject: `CONSUMER.CREATE.${stream}.${name}.${filter}`, body: { stream_name: stream, config } };
}

export function makeScript(random: Random, length: number): Step[] {
  return Array.from({ length }, (): Step => {
    const stream = random.pick(STREAMS);
    return random.pick([
      publish,
      publish,
      publish,
      together,
      get,
      get,
      direct,
      direct,
      remove,
      purge,
      pull,
      pull,
      settle,
      settle,
      look,
    ])(random, stream);
  });
}

/** Of each subject one: no two of a batch are about the same. */
function together(random: Random, stream: string): Step {
  const subjects = WORDS.filter(() => random.chance(0.6)).map((word) => `${stream}.${word}`);
  const publishes = subjects.map((subject): Publish => ({
    kind: "publish",
    subject,
    data: "y".repeat(random.between(0, 3)),
    headers: random.chance(0.3) ? [["Nats-Rollup", "sub"]] : [],
    expect: { off: random.pick([0, 0, 0, 0, 0, -1, 1]) },
  }));
  return {
    kind: "batch",
    id: `b${random.between(1, 1e9)}`,
    publishes,
    without: random.chance(0.2) ? random.between(0, 3) : -1,
  };
}

function publish(random: Random, stream: string): Step {
  const headers: Header[] = [];
  if (random.chance(0.3)) headers.push(["Mine", String(random.between(1, 9))]);
  if (random.chance(0.2)) headers.push(["Nats-Rollup", random.pick(["sub", "sub", "sub", "all", "wrong"])]);
  const among = random.chance(0.5) ? `${stream}.${random.pick(PATTERNS)}` : undefined;
  const expect = { off: random.pick([0, 0, 0, -1, 1]), ...(among === undefined ? {} : { among }) };
  return {
    kind: "publish",
    subject: `${stream}.${random.pick(WORDS)}`,
    data: "x".repeat(random.between(0, 3)),
    ...(headers.length > 0 ? { headers } : {}),
    ...(random.chance(0.5) ? { expect } : {}),
  };
}

function get(random: Random, stream: string): Step {
  return { kind: "api", subject: `STREAM.MSG.GET.${stream}`, body: wanted(random, stream) };
}

function direct(random: Random, stream: string): Step {
  const subject = `DIRECT.GET.${stream}`;
  const batch = random.between(1, 5);
  switch (random.between(1, 5)) {
    case 1:
      return { kind: "api", subject: `${subject}.${stream}.${random.pick(WORDS)}` };
    case 2:
      return { kind: "api", subject, body: { ...wanted(random, stream), batch }, many: MANY };
    case 3: {
      const patterns = [random.pick(PATTERNS), random.pick(PATTERNS)].map((pattern) => `${stream}.${pattern}`);
      const more = random.pick([{}, { batch }, { seq: random.between(1, 20) }]);
      return { kind: "api", subject, body: { multi_last: patterns, ...more }, many: MANY };
    }
    default:
      return { kind: "api", subject, body: wanted(random, stream) };
  }
}

function wanted(random: Random, stream: string): object {
  const seq = random.between(0, 25);
  const pattern = `${stream}.${random.pick(PATTERNS)}`;
  return random.pick([{ seq }, { last_by_subj: pattern }, { seq, next_by_subj: pattern }, { next_by_subj: pattern }]);
}

function remove(random: Random, stream: string): Step {
  const body = { seq: random.between(0, 25), no_erase: true };
  return { kind: "api", subject: `STREAM.MSG.DELETE.${stream}`, body };
}

function purge(random: Random, stream: string): Step {
  const seq = random.between(1, 25);
  const keep = random.between(1, 3);
  const filter = `${stream}.${random.pick(PATTERNS)}`;
  const body = random.pick([{ filter }, { filter, seq }, { filter, keep }, { filter, seq }, { seq, keep }]);
  return { kind: "api", subject: `STREAM.PURGE.${stream}`, body };
}

function pull(random: Random, stream: (typeof STREAMS)[number]): Step {
  return { kind: "pull", stream, consumer: random.pick(CONSUMERS[stream]), batch: random.between(1, 4) };
}

function settle(random: Random): Step {
  const how = random.pick(["+ACK", "+ACK", "", "-NAK", '-NAK {"delay": 20000000000}', "+WPI", "+TERM"]);
  return { kind: "settle", which: random.between(0, 20), how, forget: random.chance(0.8) };
}

function look(random: Random, stream: (typeof STREAMS)[number]): Step {
  switch (random.between(1, 4)) {
    case 1: {
      const more = random.pick([{}, { offset: random.between(0, 4) }]);
      const filter = random.pick([`${stream}.${random.pick(PATTERNS)}`, ">"]);
      return { kind: "api", subject: `STREAM.INFO.${stream}`, body: { subjects_filter: filter, ...more } };
    }
    case 2:
      return { kind: "api", subject: `STREAM.NAMES`, body: { subject: `${stream}.a` } };
    default:
      return { kind: "api", subject: `CONSUMER.INFO.${stream}.${random.pick(CONSUMERS[stream])}` };
  }
}
