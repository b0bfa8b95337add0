/** Where messages come from, and where those go that are given up. */
import { resolve } from "node:path";
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
import { object, type ObjectOf, optional, variants, withDefault } from "./fields.ts";
import { convert, either, integer, isObject, isText, oneOf, type Schema, text } from "./schema.ts";
import { DAY_MS, duration, HOUR_MS, httpUrl, queueName, storeUrl } from "./values.ts";

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
    backoff: withDefault(duration(0, DAY_MS), DEFAULT_RETRY.backoffMs),
    max_backoff: withDefault(duration(0, DAY_MS), DEFAULT_RETRY.maxBackoffMs),
  }),
  ({ attempts, backoff, max_backoff: maxBackoff }) => ({ attempts, backoffMs: backoff, maxBackoffMs: maxBackoff }),
);

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
  sqs: convert(sqs, (fields) =>
    sqsSource({
      ...commonOf(fields, lastOf(fields.queue)),
      queue: fields.queue,
      region: fields.region,
      endpoint: fields.endpoint,
      visibilityMs: fields.visibility,
      deadLetterQueue: fields.dead_letter_queue,
    }),
  ),
  pubsub: convert(pubsub, (fields) =>
    pubsubSource({
      ...commonOf(fields, lastOf(fields.subscription)),
      subscription: fields.subscription,
      endpoint: fields.endpoint,
      ackDeadlineMs: fields.ack_deadline,
      deadLetterTopic: fields.dead_letter_topic,
    }),
  ),
  baton: convert(baton, (fields) => {
    const common = commonOf(fields, fields.queue);
    const { store, queue, lease } = fields;
    const options = { name: common.name, store, queue, ...(lease === undefined ? {} : { leaseMs: lease }) };
    return {
      ...common,
      open: async () => (await import("../sources/baton/baton-source.ts")).batonSource(options),
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
