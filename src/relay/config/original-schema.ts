/**
 * The configuration of the service that the relay grew out of, in all its spellings. Times are whole seconds. What that
 * service did with a message is kept too: it is tried again and again, and one that the receiver calls fatal, or that
 * cannot be transformed, is deleted.
 */
import {
  DEFAULT_CONCURRENCY,
  DEFAULT_GRACE_MS,
  DEFAULT_HTTP,
  DEFAULT_RETRY,
  type HttpSettings,
  type SourceSettings,
} from "../settings.ts";
import { DEFAULT_ACK_DEADLINE_MS } from "../sources/pubsub/pubsub-settings.ts";
import { DEFAULT_VISIBILITY_MS } from "../sources/sqs/sqs-settings.ts";
import { object, optional, variants, withDefault } from "./fields.ts";
import type { ReadRelay } from "./relay-schema.ts";
import { convert, integer, list, oneOf, refused, type Schema, text } from "./schema.ts";
import { isSubscription, lastOf, pubsubSource, sqsSource } from "./source-schema.ts";
import { namedTransform } from "./transform-schema.ts";
import { httpUrl } from "./values.ts";

const TIMEOUT_SECONDS = 120;

/** Nothing but the source itself ever gives a message up. */
const COMMON = {
  weight: 1,
  retry: { ...DEFAULT_RETRY, attempts: Infinity },
  deadLetter: { to: "drop" },
} as const;

const sqsQueue: Schema<SourceSettings> = convert(
  object("a queue of SQS", {
    name: text("the name of a queue"),
    visibility_timeout: withDefault(integer(1, 43_200), DEFAULT_VISIBILITY_MS / 1_000),
    endpoint: optional(httpUrl),
    region: optional(text("a region such as us-west-2")),
  }),
  ({ name: queue, visibility_timeout: seconds, endpoint, region }) => {
    const name = lastOf(queue);
    const settings = { name, queue, endpoint, region, visibilityMs: seconds * 1_000, deadLetterQueue: undefined };
    return sqsSource({ ...COMMON, ...settings });
  },
);

const pubsubQueue: Schema<SourceSettings> = convert(
  object("a subscription of Pub/Sub", {
    subscription_id: text("a subscription in full: projects/PROJECT/subscriptions/NAME", isSubscription),
    ack_deadline: optional(integer(1, 600)),
    ack_deadline_seconds: optional(integer(1, 600)),
    endpoint: optional(text("a host with its port, or a URL")),
  }),
  ({ subscription_id: subscription, ack_deadline: first, ack_deadline_seconds: second, endpoint }) => {
    const seconds = first ?? second ?? DEFAULT_ACK_DEADLINE_MS / 1_000;
    const settings = { name: lastOf(subscription), subscription, endpoint, ackDeadlineMs: seconds * 1_000 };
    return pubsubSource({ ...COMMON, ...settings, deadLetterTopic: undefined });
  },
);

const sqsQueues = convert(
  object("queues of SQS", { type: oneOf("aws_sqs", "awssqs"), config: list(sqsQueue, 1) }),
  ({ config }) => config,
);
const pubsubQueues = convert(
  object("subscriptions of Pub/Sub", { type: oneOf("gcp_pubsub", "gcppubsub"), config: list(pubsubQueue, 1) }),
  ({ config }) => config,
);

const processor = object("a processor", {
  type: oneOf("http_raw", "http_dapr", "http"),
  config: object("the configuration of a processor", {
    subscriber_url: httpUrl,
    method: withDefault(oneOf("POST", "GET"), "POST"),
    timeout: withDefault(integer(1, 86_400), TIMEOUT_SECONDS),
    fatal_codes: withDefault(list(integer(100, 599)), []),
    content_type: optional(text("a media type such as application/json")),
  }),
});

export const original: Schema<ReadRelay> = convert(
  object("a configuration of the original service", {
    poller: optional(
      object("a poller", { type: withDefault(oneOf("simple"), "simple"), concurrency: optional(integer(1, 100_000)) }),
    ),
    poll_concurrency: optional(integer(1, 100_000)),
    queues: variants("type", {
      aws_sqs: sqsQueues,
      awssqs: sqsQueues,
      gcp_pubsub: pubsubQueues,
      gcppubsub: pubsubQueues,
    }),
    processor,
    transformer: optional(object("a transformer", { type: namedTransform })),
  }),
  ({ poller, poll_concurrency: pollConcurrency, queues, processor: { type, config }, transformer }, at) => {
    const isDapr = type === "http_dapr";
    const unwrap = isDapr ? namedTransform.read("dapr_aws", at) : transformer?.type;
    if (unwrap === refused) return refused;
    const receiver: HttpSettings = {
      ...DEFAULT_HTTP,
      target: { type: "url", url: config.subscriber_url },
      method: config.method,
      contentType: config.content_type ?? (isDapr ? "application/json" : "text/plain"),
      timeoutMs: config.timeout * 1_000,
      fatal: { codes: config.fatal_codes, action: "drop" },
    };
    const route = {
      name: "main",
      sources: queues,
      choice: "strict",
      concurrency: poller?.concurrency ?? pollConcurrency ?? DEFAULT_CONCURRENCY,
      transforms: unwrap === undefined ? [] : [unwrap],
      key: undefined,
      form: { type: "raw" },
      processor: receiver,
    } as const;
    return { routes: [route], keys: undefined, admin: undefined, graceMs: DEFAULT_GRACE_MS };
  },
);
