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
import { either, convert, integer, oneOf, refused, type Schema, text } from "./schema.ts";
import { type Field, optional, variants } from "./fields.ts";
import { replies } from "./processor-schema.ts";
import type { ReadRelay } from "./relay-schema.ts";
import { isSubscription, lastOf, pubsubSource, sqsSource } from "./source-schema.ts";
import { namedTransform, type OpenTransform } from "./transform-schema.ts";
import { duration, HOUR_MS, httpUrl } from "./values.ts";
import { anyCase, weakInteger, weakList, weakObject, weakText } from "./weak-schema.ts";

const TIMEOUT_SECONDS = 120;
/** Three weeks: timers go no further. */
const LONGEST_TIMEOUT_SECONDS = 1_800_000;

/** Nothing but the source itself ever gives a message up. */
const COMMON = {
  weight: 1,
  retry: { ...DEFAULT_RETRY, attempts: Infinity },
  deadLetter: { to: "drop" },
} as const;

/** Needed, and not empty. */
function needed(expected: string, isRight?: (given: string) => boolean): Schema<string> {
  return convert(weakText(text(expected, isRight)), (given, at) => given ?? at.refuse(expected, "nothing"));
}

function unlessEmpty(schema: Schema<string>): Field<string | undefined> {
  return optional(weakText(schema));
}

const sqsQueue: Schema<SourceSettings> = convert(
  weakObject("a queue of SQS", {
    name: needed("the name of a queue"),
    visibility_timeout: optional(weakInteger(1, 43_200)),
    endpoint: unlessEmpty(httpUrl),
    region: unlessEmpty(text("a region such as us-west-2")),
  }),
  ({ name: queue, visibility_timeout: seconds, endpoint, region }) => {
    const name = lastOf(queue);
    const visibilityMs = seconds === undefined ? DEFAULT_VISIBILITY_MS : seconds * 1_000;
    const settings = { name, queue, endpoint, region, visibilityMs, deadLetterQueue: undefined };
    return sqsSource({ ...COMMON, ...settings });
  },
);

const pubsubQueue: Schema<SourceSettings> = convert(
  weakObject("a subscription of Pub/Sub", {
    subscription_id: needed("a subscription in full: projects/PROJECT/subscriptions/NAME", isSubscription),
    ack_deadline: optional(weakInteger(1, 600)),
    ack_deadline_seconds: optional(weakInteger(1, 600)),
    endpoint: unlessEmpty(text("a host with its port, or a URL")),
  }),
  ({ subscription_id: subscription, ack_deadline: first, ack_deadline_seconds: second, endpoint }) => {
    const seconds = first ?? second ?? DEFAULT_ACK_DEADLINE_MS / 1_000;
    const settings = { name: lastOf(subscription), subscription, endpoint, ackDeadlineMs: seconds * 1_000 };
    return pubsubSource({ ...COMMON, ...settings, deadLetterTopic: undefined });
  },
);

const sqsQueues = convert(
  weakObject("queues of SQS", { type: oneOf("aws_sqs", "awssqs"), config: weakList(sqsQueue, 1) }),
  ({ config }) => config,
);
const pubsubQueues = convert(
  weakObject("subscriptions of Pub/Sub", { type: oneOf("gcp_pubsub", "gcppubsub"), config: weakList(pubsubQueue, 1) }),
  ({ config }) => config,
);

const METHODS = ["POST", "GET"] as const;

const processor = weakObject("a processor", {
  type: oneOf("http_raw", "http_dapr", "http"),
  config: weakObject("the configuration of a processor", {
    subscriber_url: needed("a URL that begins with http:// or https://", isHttpUrl),
    method: unlessEmpty(oneOf(...METHODS)),
    timeout: optional(weakInteger(1, LONGEST_TIMEOUT_SECONDS)),
    fatal_codes: optional(weakList(weakInteger(-Number.MAX_SAFE_INTEGER))),
    content_type: unlessEmpty(text("a media type such as application/json")),
    // The original had none of this: its applications' answers did not count.
    replies: optional(replies),
  }),
});

/** Whole seconds like all times of these files, or with a unit like all of ours. */
const grace: Schema<number> = either(
  (value) => typeof value === "number",
  convert(integer(0, HOUR_MS / 1_000), (seconds) => seconds * 1_000),
  duration(0, HOUR_MS),
);

export const original: Schema<ReadRelay> = convert(
  weakObject("a configuration of the original service", {
    poller: optional(
      weakObject("a poller", {
        type: unlessEmpty(oneOf("simple")),
        concurrency: optional(weakInteger(1, 100_000)),
      }),
    ),
    poll_concurrency: optional(weakInteger(1, 100_000)),
    queues: anyCase(
      "type",
      variants("type", {
        aws_sqs: sqsQueues,
        awssqs: sqsQueues,
        gcp_pubsub: pubsubQueues,
        gcppubsub: pubsubQueues,
      }),
    ),
    processor,
    transformer: optional(weakObject("a transformer", { type: optional(unlessNamed()) })),
    grace: optional(grace),
  }),
  (fields, at) => {
    const {
      poller,
      poll_concurrency: pollConcurrency,
      queues,
      transformer,
      grace: graceMs = DEFAULT_GRACE_MS,
    } = fields;
    const { type, config } = fields.processor;
    const isDapr = type === "http_dapr";
    const unwrap = isDapr ? namedTransform.read("dapr_aws", at) : transformer?.type;
    if (unwrap === refused) return refused;
    const { url, headers } = withoutPassword(config.subscriber_url);
    const receiver: HttpSettings = {
      ...DEFAULT_HTTP,
      target: { type: "url", url },
      headers,
      method: METHODS.find((method) => method === config.method) ?? "POST",
      contentType: config.content_type ?? (isDapr ? "application/json" : "text/plain"),
      timeoutMs: (config.timeout ?? TIMEOUT_SECONDS) * 1_000,
      fatal: { codes: (config.fatal_codes ?? []).filter((code) => code !== undefined), action: "drop" },
      replies: config.replies ?? DEFAULT_HTTP.replies,
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
      // A 404 was tried again there. To drop it as Dapr does would lose what comes while a route is not there yet.
      daprReplies: config.replies === undefined ? "dapr-body" : undefined,
    } as const;
    return { routes: [route], keys: undefined, admin: undefined, graceMs };
  },
);

/** An empty text, as one that is not there, is no transform. */
function unlessNamed(): Schema<OpenTransform | undefined> {
  return {
    expected: namedTransform.expected,
    read: (value, at) => (value === "" ? undefined : namedTransform.read(value, at)),
  };
}

function isHttpUrl(given: string): boolean {
  return URL.canParse(given) && /^https?:$/.test(new URL(given).protocol);
}

/** The original sent a password of the URL as a header, which is where it belongs. */
function withoutPassword(given: string): { readonly url: string; readonly headers: Readonly<Record<string, string>> } {
  const url = new URL(given);
  if (url.username === "" && url.password === "") return { url: given, headers: {} };
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = "";
  url.password = "";
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(pair).toString("base64")}` } };
}
