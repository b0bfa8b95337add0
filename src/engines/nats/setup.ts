/** Streams and consumers: made when they are first needed, compared when they exist, never changed. */
import { BatonError, LevelsDiffer } from "../../domain/errors.ts";
import { checkLevels, DEFAULT_LEVELS } from "../../domain/level.ts";
import { ownJson, textOfBytes } from "./own-json.ts";
import type { ConsumerConfig, JetStream, StreamConfig, StreamInfo } from "./jetstream.ts";
import type { StoreSettings } from "./options.ts";
import { Lost } from "./requests.ts";
import type { QueueSubjects, Subjects } from "./subjects.ts";

export interface QueueRecord {
  readonly levels: readonly string[];
  readonly paused: boolean;
}

/** A delivery that is not taken up for so long goes to somebody else: its receiver is gone, or stopped. */
const ACK_WAIT_NS = 1e9;
/**
 * A stream that is made anew begins beyond every sequence of the one before, unless that wrote this many messages per
 * millisecond of its life. More would leave too little room: a sequence stands for several fences, and those are numbers of JavaScript.
 */
const SEQUENCES_PER_MS = 64;
/** Pulls that wait at one consumer: one per process and level. */
const MOST_WAITING = 4_096;
const MOST_PENDING = 50_000;
/** How long a stream knows the names of writes that carry one. */
const WINDOW_NS = 120 * 1e9;

export async function setUpShared(
  js: JetStream,
  subjects: Subjects,
  settings: StoreSettings,
  now: number,
): Promise<void> {
  const config = streamConfig(subjects.shared, [subjects.allShared], "limits", true, settings);
  note(js, await ensureStream(js, { ...config, first_seq: now * SEQUENCES_PER_MS }));
}

export async function setUpQueue(
  js: JetStream,
  subjects: QueueSubjects,
  levels: number,
  shared: string,
  settings: StoreSettings,
  now: number,
): Promise<void> {
  const config = streamConfig(subjects.stream, [subjects.all], "workqueue", false, settings);
  note(js, await ensureStream(js, { ...config, first_seq: now * SEQUENCES_PER_MS }));
  const consumers = Array.from({ length: levels }, (_, level) =>
    ensureConsumer(js, subjects.stream, consumerConfig(subjects.readyConsumer(level), subjects.readyAt(level))),
  );
  await Promise.all([...consumers, ensureConsumer(js, shared, consumerConfig(subjects.dueConsumer, subjects.allDue))]);
}

/** The queue as it is declared, by this caller or by one before. */
export async function declareQueue(
  js: JetStream,
  subjects: Subjects,
  queue: string,
  levels: readonly string[] | undefined,
): Promise<QueueRecord> {
  const wanted: QueueRecord = { levels: checkLevels(levels ?? DEFAULT_LEVELS), paused: false };
  const found = await readQueue(js, subjects, queue);
  if (found === undefined) {
    const result = await js.putSurely(subjects.queueRecord(queue), JSON.stringify(wanted), { expect: 0 });
    if (!result.refused) return wanted;
  }
  const record = found ?? (await readQueue(js, subjects, queue)) ?? wanted;
  if (levels !== undefined && JSON.stringify(record.levels) !== JSON.stringify(wanted.levels))
    throw new LevelsDiffer(queue, record.levels, levels);
  return record;
}

export async function readQueue(js: JetStream, subjects: Subjects, queue: string): Promise<QueueRecord | undefined> {
  const stored = await js.last(subjects.shared, subjects.queueRecord(queue));
  return stored === undefined ? undefined : readRecord(stored.data);
}

export function readRecord(data: Uint8Array): QueueRecord {
  return ownJson<QueueRecord>(textOfBytes(data));
}

/** Far in the future, or over. */
const FOR_EVER = Date.UTC(2999, 0);

export async function pauseQueue(js: JetStream, subjects: Subjects, queue: string, paused: boolean): Promise<void> {
  const own = subjects.of(queue);
  for (;;) {
    const stored = await js.last(subjects.shared, subjects.queueRecord(queue));
    if (stored === undefined) return;
    const record = readRecord(stored.data);
    await Promise.all(
      record.levels.map((_, level) => js.pauseConsumer(own.stream, own.readyConsumer(level), paused ? FOR_EVER : 0)),
    );
    // Written last: whoever hears of it finds the consumers as it says.
    const result = await js.put(subjects.queueRecord(queue), JSON.stringify({ ...record, paused }), {
      expect: stored.sequence,
      rollup: true,
    });
    if (!result.refused) return;
  }
}

function streamConfig(
  name: string,
  subjects: readonly string[],
  retention: StreamConfig["retention"],
  schedules: boolean,
  { replicas, storage }: StoreSettings,
): StreamConfig {
  return {
    name,
    subjects,
    retention,
    storage,
    num_replicas: replicas,
    discard: schedules ? "old" : "new",
    allow_direct: true,
    allow_rollup_hdrs: true,
    allow_msg_ttl: true,
    allow_msg_schedules: schedules,
    deny_delete: false,
    deny_purge: false,
    max_msgs_per_subject: -1,
    duplicate_window: WINDOW_NS,
  };
}

function consumerConfig(name: string, filter: string): ConsumerConfig {
  return {
    durable_name: name,
    filter_subject: filter,
    ack_policy: "explicit",
    ack_wait: ACK_WAIT_NS,
    max_deliver: -1,
    max_ack_pending: MOST_PENDING,
    max_waiting: MOST_WAITING,
  };
}

/** To create one that exists would change it. */
async function ensureConsumer(js: JetStream, stream: string, config: ConsumerConfig): Promise<void> {
  const found = await js.consumerInfo(stream, config.durable_name);
  const is = (found ?? (await js.createConsumer(stream, config))).config;
  const isOurs = is.filter_subject === config.filter_subject && is.ack_policy === config.ack_policy;
  // One that gives up on messages would leave keys behind that nobody hears of.
  if (isOurs && is.max_deliver === config.max_deliver) return;
  throw new BatonError(
    "STORE_UNAVAILABLE",
    `The consumer ${config.durable_name} of stream ${stream} exists, but was not made for Baton. Nothing was changed. ` +
      "Use another prefix, or remove the consumer.",
  );
}

async function ensureStream(js: JetStream, config: StreamConfig): Promise<StreamInfo> {
  const found = (await js.streamInfo(config.name)) ?? (await js.again(() => makeStream(js, config)));
  const wrong = differences(found.config, config);
  if (wrong.length > 0) {
    throw new BatonError(
      "STORE_UNAVAILABLE",
      `The stream ${config.name} exists, but was not made for Baton: ${wrong.join("; ")}. Nothing was changed. ` +
        "Use another prefix, or remove the stream.",
    );
  }
  return found;
}

/** One that somebody else is making is refused before it is found: servers of a cluster learn of it one after another. */
async function makeStream(js: JetStream, config: StreamConfig): Promise<StreamInfo> {
  const made = (await js.createStream(config)) ?? (await js.streamInfo(config.name));
  if (made === undefined) throw new Lost(config.name);
  return made;
}

/** What exclusivity and durability rest on. Replicas and storage may differ: they are the operator's, and reported. */
function differences(found: StreamConfig, wanted: StreamConfig): readonly string[] {
  const wrong: string[] = [];
  const compare = (what: string, is: unknown, should: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(should))
      wrong.push(`${what} is ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
  };
  compare("subjects", found.subjects, wanted.subjects);
  compare("retention", found.retention, wanted.retention);
  for (const flag of ["allow_direct", "allow_rollup_hdrs", "allow_msg_ttl", "allow_msg_schedules"] as const)
    compare(flag, found[flag] ?? false, wanted[flag]);
  for (const flag of ["deny_delete", "deny_purge"] as const) compare(flag, found[flag] ?? false, false);
  for (const limit of ["max_msgs_per_subject", "max_msgs", "max_bytes"] as const) {
    const is = found[limit] ?? -1;
    if (is > 0 && found.discard !== "new")
      wrong.push(`${limit} is ${is} and old messages are discarded: work would be lost`);
  }
  if ((found.max_age ?? 0) > 0) wrong.push("max_age is set: work would vanish by itself");
  return wrong;
}

function note(js: JetStream, { config, cluster }: StreamInfo): void {
  if (config.num_replicas > 1) js.readByLeader(config.name);
  else js.livesAt(config.name, cluster?.leader);
}
