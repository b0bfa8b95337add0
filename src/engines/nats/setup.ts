/** Streams and consumers: made when they are first needed, compared when they exist, never changed. */
import { BatonError, LevelsDiffer } from "../../domain/errors.ts";
import { checkLevels, DEFAULT_LEVELS } from "../../domain/level.ts";
import { ownJson, textOfBytes } from "./own-json.ts";
import { consumerConfig, differ, ensureConsumer, type EnsuredConsumer } from "./consumers.ts";
import type { ConsumerConfig, StreamConfig, StreamInfo } from "./api-types.ts";
import type { Stored } from "./api-replies.ts";
import { Damaged } from "./damage.ts";
import type { JetStream } from "./jetstream.ts";
import type { StoreSettings } from "./options.ts";
import { Lost } from "./requests.ts";
import type { QueueSubjects, Subjects } from "./subjects.ts";

export interface QueueRecord {
  readonly levels: readonly string[];
  readonly paused: boolean;
  /** See `deletion.ts`. */
  readonly deletion?: QueueDeletion;
}

export interface QueueDeletion {
  /** Of one that is deleted, what is left is not used any more. */
  readonly step: "closing" | "deleted";
  readonly force: boolean;
  /** Another one with each write, so that nobody takes the write of another for its own. */
  readonly by: string;
  /** What is remembered of the queue is taken away if it was written before this sequence. */
  readonly before?: number;
}

export interface Declared extends QueueRecord {
  /** By this very call. */
  readonly isNew: boolean;
}

/** How long a stream knows the names of writes that carry one. */
const WINDOW_NS = 120 * 1e9;

/** @param first the sequence that the stream begins with, if it is to be made */
export async function setUpShared(
  js: JetStream,
  subjects: Subjects,
  settings: StoreSettings,
  first: () => Promise<number>,
): Promise<StreamInfo> {
  const config = streamConfig(subjects.shared, [subjects.allShared], "limits", true, settings);
  const found = await ensureStream(js, config, first);
  note(js, found);
  return found;
}

/** The stream is closed: the queue is being deleted, or that was cut off. Nothing was made. */
export class StreamClosed extends Error {
  override readonly name = "StreamClosed";
}

export function isClosed({ config }: StreamInfo, { closed }: QueueSubjects): boolean {
  return config.subjects?.length === 1 && config.subjects[0] === closed;
}

/** @param first the sequence that the stream begins with; asked for only if it is to be made */
export async function setUpQueue(
  js: JetStream,
  subjects: QueueSubjects,
  record: QueueRecord,
  settings: StoreSettings,
  first: () => Promise<number>,
): Promise<readonly EnsuredConsumer[]> {
  const config = streamConfig(subjects.stream, [subjects.all], "workqueue", false, settings);
  const assertOpen = (found: StreamInfo): void => {
    if (isClosed(found, subjects)) throw new StreamClosed(subjects.stream);
  };
  note(js, await ensureStream(js, config, first, assertOpen));
  return await Promise.all(
    consumersOf(subjects, record).map(([stream, consumer]) => ensureConsumer(js, stream, consumer)),
  );
}

/** The consumers of a queue, each with its stream. That of the last, which all queues share, is never paused. */
export function consumersOf(
  subjects: QueueSubjects,
  { levels, paused }: QueueRecord,
): readonly (readonly [string, ConsumerConfig])[] {
  return [
    ...levels.map((_, level): readonly [string, ConsumerConfig] => [
      subjects.stream,
      consumerConfig(subjects.readyConsumer(level), subjects.readyAt(level), paused),
    ]),
    [subjects.sharedStream, consumerConfig(subjects.dueConsumer, subjects.allDue)],
  ];
}

/** A record that is not that of a queue in use changes before long: this waits for that. */
export type WaitForDeletion = (queue: string, stored: Stored) => Promise<void>;

/**
 * The queue as it is declared, by this caller or by one before.
 *
 * @param wait for the deletion of a queue that is declared anew
 */
export async function declareQueue(
  js: JetStream,
  subjects: Subjects,
  queue: string,
  levels: readonly string[] | undefined,
  wait: WaitForDeletion,
): Promise<Declared> {
  const wanted: QueueRecord = { levels: checkLevels(levels ?? DEFAULT_LEVELS), paused: false };
  for (;;) {
    const stored = await js.last(subjects.shared, subjects.queueRecord(queue));
    if (stored === undefined) {
      const result = await js.putSurely(subjects.queueRecord(queue), JSON.stringify(wanted), { expect: 0 });
      if (!result.refused) return { ...wanted, isNew: true };
      continue;
    }
    const record = recordIn(queue, stored);
    if (record.deletion !== undefined) {
      await wait(queue, stored);
      continue;
    }
    if (levels !== undefined && JSON.stringify(record.levels) !== JSON.stringify(wanted.levels))
      throw new LevelsDiffer(queue, record.levels, levels);
    return { ...record, isNew: false };
  }
}

/** Undefined: there is none, or it was deleted. */
export async function readQueue(js: JetStream, subjects: Subjects, queue: string): Promise<QueueRecord | undefined> {
  const stored = await js.last(subjects.shared, subjects.queueRecord(queue));
  const record = stored === undefined ? undefined : recordIn(queue, stored);
  return record?.deletion?.step === "deleted" ? undefined : record;
}

/** Throws when it is not one that Baton wrote. */
export function readRecord(data: Uint8Array): QueueRecord {
  const record = ownJson<QueueRecord | null>(textOfBytes(data));
  if (Array.isArray(record?.levels) && record.levels.length > 0 && typeof record.paused === "boolean") return record;
  throw new TypeError("it names no levels");
}

export function recordIn(queue: string, stored: Stored): QueueRecord {
  try {
    return readRecord(stored.data);
  } catch (error) {
    throw new Damaged(`The record of queue ${queue}`, stored, error);
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
    allow_atomic: true,
    deny_delete: false,
    deny_purge: false,
    max_msgs_per_subject: -1,
    duplicate_window: WINDOW_NS,
  };
}

async function ensureStream(
  js: JetStream,
  config: StreamConfig,
  first: () => Promise<number>,
  assertUsable: (found: StreamInfo) => void = () => undefined,
): Promise<StreamInfo> {
  const found = (await js.streamInfo(config.name)) ?? (await makeStream(js, { ...config, first_seq: await first() }));
  assertUsable(found);
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
  return await js.again(async () => {
    const made = (await js.createStream(config)) ?? (await js.streamInfo(config.name));
    if (made === undefined) throw new Lost(config.name);
    return made;
  });
}

/** What exclusivity and durability rest on. Replicas and storage may differ: they are the operator's, and reported. */
function differences(found: StreamConfig, wanted: StreamConfig): readonly string[] {
  const wrong: string[] = [];
  const compare = (what: string, is: unknown, should: unknown): void => void wrong.push(...differ(what, is, should));
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
  // With replicas it is they that a write waits for.
  js.batchesFor(config.name, config.allow_atomic === true && config.num_replicas === 1);
}
