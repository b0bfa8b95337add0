/** What handles a message: an HTTP receiver, or a command. */
import { formatDuration } from "../../domain/duration.ts";
import {
  DEFAULT_COMMAND,
  DEFAULT_HTTP,
  type HttpSettings,
  type HttpTarget,
  type ProcessorSettings,
} from "../settings.ts";
import { object, optional, variants, withDefault } from "./fields.ts";
import {
  convert,
  either,
  flag,
  integer,
  list,
  oneOf,
  record,
  type refused,
  type Schema,
  secret,
  text,
} from "./schema.ts";
import { DAY_MS, duration, HOUR_MS, httpUrl } from "./values.ts";

/** Statuses, or exit codes, that mean "do not try again". */
const fatal = object("fatal settings", {
  codes: withDefault(list(integer(0, 999)), []),
  action: withDefault(
    convert(oneOf("dead_letter", "drop"), (action) => (action === "drop" ? action : "dead-letter")),
    "dead-letter",
  ),
});

/** With these no delivery could be sent, or each would have a connection of its own. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Names as HTTP allows them; values without line breaks, which would begin another header. They are what tokens are put
 * in, and so never shown.
 */
const headers = convert(
  record(
    secret("the value of a header, on one line", (given) => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(given)),
    (name) => {
      if (!/^[!#$%&'*+.^`|~\w-]+$/.test(name)) return "the name of a header";
      return OF_THE_CONNECTION.has(name.toLowerCase())
        ? "another header: this one is about the connection, which the relay sees to"
        : undefined;
    },
  ),
  (entries) => Object.fromEntries(entries),
);

/** Standard Webhooks: 24 to 64 bytes. */
const signingSecret = secret("a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64", (given) => {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(given) ?? [];
  const bytes = encoded === undefined ? 0 : Buffer.from(encoded, "base64").length;
  return bytes >= 24 && bytes <= 64;
});

const breaker = object("breaker settings", {
  failures: withDefault(integer(1), DEFAULT_HTTP.breaker?.failures ?? 1),
  open: withDefault(duration(1, HOUR_MS), DEFAULT_HTTP.breaker?.openMs ?? 1),
});

/** How answers are read. */
export const replies: Schema<Exclude<HttpSettings["replies"], "dapr-body">> = oneOf("status", "dapr");

const http = object("a processor of type http", {
  type: oneOf("http"),
  url: optional(httpUrl),
  dapr_subscription: optional(
    object("a subscription of a Dapr application", {
      pubsub: text("the name of a pubsub component"),
      topic: text("a topic"),
    }),
  ),
  url_attribute: optional(
    object("where messages say their own URL", {
      name: text("the name of an attribute"),
      hosts: list(
        text("a host, or *.example.com for all below it", (given) => /^(\*\.)?[\w.-]+$/.test(given)),
        1,
      ),
      plain_http: withDefault(flag, false),
      private_addresses: withDefault(flag, false),
    }),
  ),
  method: withDefault(oneOf("POST", "PUT", "PATCH", "GET"), DEFAULT_HTTP.method),
  headers: withDefault(headers, DEFAULT_HTTP.headers),
  content_type: optional(text("a media type such as application/json", (given) => /^[^\s/]+\/[^\s]/.test(given))),
  timeout: withDefault(duration(1, DAY_MS), DEFAULT_HTTP.timeoutMs),
  connect_timeout: optional(duration(1, HOUR_MS)),
  per_host: withDefault(integer(1), DEFAULT_HTTP.perHost),
  fatal: withDefault(fatal, DEFAULT_HTTP.fatal),
  replies: optional(replies),
  breaker: withDefault(
    either(
      (value) => value === false,
      convert(flag, () => undefined),
      convert(breaker, ({ failures, open }) => ({ failures, openMs: open })),
    ),
    DEFAULT_HTTP.breaker,
  ),
  signing_secrets: withDefault(list(signingSecret), DEFAULT_HTTP.signingSecrets),
});

const command = object("a processor of type command", {
  type: oneOf("command"),
  command: list(
    text("a word of the command", () => true),
    1,
  ),
  fatal: withDefault(fatal, DEFAULT_COMMAND.fatal),
  timeout: withDefault(duration(1, 7 * DAY_MS), DEFAULT_COMMAND.timeoutMs),
});

export interface ReadProcessor {
  readonly settings: ProcessorSettings;
  /** The file says how answers are to be read. */
  readonly saysReplies: boolean;
}

export const processor: Schema<ReadProcessor> = variants("type", {
  http: convert(http, (fields, at): ReadProcessor | typeof refused => {
    const target = targetOf(fields);
    if (target === undefined)
      return at.refuse("url, url with dapr_subscription, or url_attribute", "another combination of the three");
    const { timeout: timeoutMs, connect_timeout: connectMs } = fields;
    if (connectMs !== undefined && connectMs > timeoutMs)
      return at
        .field("connect_timeout")
        .refuse(
          `no more than timeout, which is ${formatDuration(timeoutMs)} for one delivery in all`,
          formatDuration(connectMs),
        );
    const settings: ProcessorSettings = {
      type: "http",
      target,
      method: fields.method,
      headers: fields.headers,
      contentType: fields.content_type,
      timeoutMs,
      connectTimeoutMs: connectMs ?? Math.min(DEFAULT_HTTP.connectTimeoutMs, timeoutMs),
      perHost: fields.per_host,
      fatal: fields.fatal,
      replies: fields.replies ?? DEFAULT_HTTP.replies,
      breaker: fields.breaker,
      signingSecrets: fields.signing_secrets,
    };
    return { settings, saysReplies: fields.replies !== undefined };
  }),
  command: convert(command, ({ command: [file = "", ...rest], fatal: codes, timeout }): ReadProcessor => {
    const settings = { type: "command", command: file, arguments: rest, fatal: codes, timeoutMs: timeout } as const;
    return { settings, saysReplies: false };
  }),
});

interface Targets {
  readonly url: string | undefined;
  readonly dapr_subscription: { readonly pubsub: string; readonly topic: string } | undefined;
  readonly url_attribute:
    | {
        readonly name: string;
        readonly hosts: readonly string[];
        readonly plain_http: boolean;
        readonly private_addresses: boolean;
      }
    | undefined;
}

function targetOf({ url, dapr_subscription: dapr, url_attribute: attribute }: Targets): HttpTarget | undefined {
  if (attribute !== undefined) {
    if (url !== undefined || dapr !== undefined) return undefined;
    const { name, hosts, plain_http: plainHttp, private_addresses: privateAddresses } = attribute;
    return { type: "attribute", name, hosts, plainHttp, privateAddresses };
  }
  if (url === undefined) return undefined;
  return dapr === undefined ? { type: "url", url } : { type: "dapr-subscription", url, ...dapr };
}
