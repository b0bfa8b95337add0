/** Where messages come from, and where those go that are given up. */
import { resolve } from "node:path";
import { formatDuration } from "../../domain/duration.ts";
import { parseWaits } from "../../domain/retry.ts";
import {
  DEFAULT_DEAD_LETTER,
  DEFAULT_RETRY,
  DEFAULT_WEIGHT,
  type DeadLetterSettings,
  type RelayRetry,
  type SourceSettings,
} from "../settings.ts";
import {
  DEFAULT_ACK_DEADLINE_MS,
  LONGEST_ACK_DEADLINE_MS,
  type PubsubSettings,
} from "../sources/pubsub/pubsub-settings.ts";
import { DEFAULT_VISIBILITY_MS, LONGEST_HOLD_MS, type SqsSettings } from "../sources/sqs/sqs-settings.ts";
import { storePackages } from "../check/packages.ts";
import { object, type ObjectOf, optional, variants, withDefault } from "./fields.ts";
import { convert, either, integer, isObject, isText, oneOf, type Place, refused, type Schema, text } from "./schema.ts";
import { DAY_MS, duration, HOUR_MS, httpUrl, queueName, storeUrl } from "./values.ts";

/** Longer than any of the clouds retains a message. */
const LONGEST_AGE_MS = 366 * DAY_MS;

const retry: Schema<RelayRetry> = convert(
  object("retry settings", {
    attempts: withDefault(
      either(
        (value) => value === "unlimited",
        convert(oneOf("unlimited"), () => Infinity),
        integer(1),
      ),
      DEFAULT_RETRY.attempts,
    ),
    backoff: optional(duration(0, DAY_MS)),
    max_backoff: optional(duration(0, DAY_MS)),
    delay: optional(duration(0, DAY_MS)),
    max_age: optional(duration(1, LONGEST_AGE_MS)),
  }),
  ({ attempts, backoff, max_backoff: maxBackoff, delay, max_age: maxAgeMs }, at) => {
    if (delay !== undefined && (backoff !== undefined || maxBackoff !== undefined))
      return at.field("delay").refuse("either a fixed delay, or backoff and max_backoff", "both");
    if (backoff !== undefined && maxBackoff !== undefined && backoff > maxBackoff)
      return at
        .field("backoff")
        .refuse(`no more than max_backoff, which is ${formatDuration(maxBackoff)}`, formatDuration(backoff));
    const waits = parseWaits({ backoff, maxBackoff, delay }, "retry");
    return { attempts, ...waits, ...(maxAgeMs === undefined ? {} : { maxAgeMs }) };
  },
);

/** A source hides a message for so long at most: a longer wait would be cut in silence. */
function mayWait({ retry: { maxBackoffMs } }: { readonly retry: RelayRetry }, longestMs: number, at: Place): boolean {
  if (maxBackoffMs <= longestMs) return true;
  at.field("retry").refuse(
    `waits of at most ${longestMs / 60_000} minutes, which is as long as such a source can hide a message`,
    `one of ${maxBackoffMs / 60_000} minutes`,
  );
  return false;
}

const deadLetterFile: Schema<DeadLetterSettings> = convert(
  object("a dead-letter file", { file: text("the path of a file") }),
  ({ file }, at) => ({ to: "file", path: resolve(at.around.folder, file) }),
);
const deadLetterQueue: Schema<DeadLetterSettings> = convert(
  object("a dead-letter queue", { queue: queueName, store: storeUrl }),
  ({ queue, store }) => ({ to: "queue", queue, store }),
);
const deadLetter: Schema<DeadLetterSettings> = either(
  isText,
  convert(oneOf("source", "drop"), (to) => ({ to })),
  either((value) => isObject(value) && "file" in value, deadLetterFile, deadLetterQueue),
);

/** What sources of every type have. */
const COMMON = {
  name: optional(text("a name")),
  weight: withDefault(integer(1, 1_000), DEFAULT_WEIGHT),
  retry: withDefault(retry, DEFAULT_RETRY),
  dead_letter: withDefault(deadLetter, DEFAULT_DEAD_LETTER),
};

const sqs = object("a source of type sqs", {
  ...COMMON,
  type: oneOf("sqs"),
  queue: text("the name or the URL of a queue"),
  region: optional(text("a region such as us-west-2")),
  endpoint: optional(httpUrl),
  visibility: withDefault(duration(1_000, LONGEST_HOLD_MS), DEFAULT_VISIBILITY_MS),
  dead_letter_queue: optional(text("the name or the URL of a queue")),
});

const pubsub = object("a source of type pubsub", {
  ...COMMON,
  type: oneOf("pubsub"),
  subscription: text("a subscription in full: projects/PROJECT/subscriptions/NAME", isSubscription),
  endpoint: optional(text("a host with its port, or a URL")),
  ack_deadline: withDefault(duration(1_000, LONGEST_ACK_DEADLINE_MS), DEFAULT_ACK_DEADLINE_MS),
  dead_letter_topic: optional(
    text("a topic in full: projects/PROJECT/topics/NAME", (given) => /^projects\/[^/]+\/topics\/[^/]+$/.test(given)),
  ),
});

const baton = object("a source of type baton", {
  ...COMMON,
  type: oneOf("baton"),
  store: storeUrl,
  queue: queueName,
  lease: optional(duration(100, 24 * HOUR_MS)),
});

/** A Baton queue, or what a driver reads. */
export const source: Schema<SourceSettings> = variants("type", {
  sqs: convert(sqs, (fields, at) => {
    if (!mayWait(fields, LONGEST_HOLD_MS, at)) return refused;
    return sqsSource({
      ...commonOf(fields, lastOf(fields.queue)),
      queue: fields.queue,
      region: fields.region,
      endpoint: fields.endpoint,
      visibilityMs: fields.visibility,
      deadLetterQueue: fields.dead_letter_queue,
    });
  }),
  pubsub: convert(pubsub, (fields, at) => {
    if (!mayWait(fields, LONGEST_ACK_DEADLINE_MS, at)) return refused;
    return pubsubSource({
      ...commonOf(fields, lastOf(fields.subscription)),
      subscription: fields.subscription,
      endpoint: fields.endpoint,
      ackDeadlineMs: fields.ack_deadline,
      deadLetterTopic: fields.dead_letter_topic,
    });
  }),
  baton: convert(baton, (fields) => {
    const common = commonOf(fields, fields.queue);
    const { store, queue, lease } = fields;
    const options = { name: common.name, store, queue, ...(lease === undefined ? {} : { leaseMs: lease }) };
    return {
      ...common,
      packages: storePackages(store),
      open: async () => (await import("../sources/baton/baton-source.ts")).batonSource(options),
      look: async () => (await import("../check/baton-queue.ts")).lookForQueue(store, queue),
    };
  }),
});

type Common = Omit<SourceSettings, "open">;

export function sqsSource({
  name,
  weight,
  retry: again,
  deadLetter: dead,
  ...settings
}: Common & SqsSettings): SourceSettings {
  return {
    name,
    weight,
    retry: again,
    deadLetter: dead,
    packages: ["@aws-sdk/client-sqs"],
    open: async () => (await import("../sources/sqs/sqs-source.ts")).openSqs({ name, ...settings }),
  };
}

export function pubsubSource({
  name,
  weight,
  retry: again,
  deadLetter: dead,
  ...settings
}: Common & PubsubSettings): SourceSettings {
  return {
    name,
    weight,
    retry: again,
    deadLetter: dead,
    packages: ["@google-cloud/pubsub"],
    open: async () => (await import("../sources/pubsub/pubsub-source.ts")).openPubsub({ name, ...settings }),
  };
}

function commonOf(fields: ObjectOf<typeof COMMON>, fallback: string): Common {
  const { name = fallback, weight, retry: again, dead_letter: dead } = fields;
  return { name, weight, retry: again, deadLetter: dead };
}

export function isSubscription(given: string): boolean {
  return /^projects\/[^/]+\/subscriptions\/[^/]+$/.test(given);
}

/** What a URL or a path ends with. */
export function lastOf(path: string): string {
  return path.split("/").findLast((part) => part !== "") ?? path;
}
