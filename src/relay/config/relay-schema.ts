/** A relay's configuration file: one route in its plain form, or several by name. */
import {
  type HttpSettings,
  DEFAULT_ADMIN,
  DEFAULT_CONCURRENCY,
  DEFAULT_GRACE_MS,
  DEFAULT_KEYS,
  type AdminSettings,
  type DeliveryForm,
  type KeyOrigin,
  type KeySettings,
  type ProcessorSettings,
  type RelaySettings,
  type RouteSettings,
} from "../settings.ts";
import { object, type ObjectOf, optional, variants, withDefault } from "./fields.ts";
import { processor } from "./processor-schema.ts";
import {
  convert,
  either,
  integer,
  isObject,
  isText,
  list,
  oneOf,
  type Place,
  record,
  refused,
  type Refused,
  type Schema,
  secret,
  text,
} from "./schema.ts";
import { source } from "./source-schema.ts";
import { type OpenTransform, transform } from "./transform-schema.ts";
import { DAY_MS, duration, HOUR_MS, jsonPointer, queueName, storeUrl } from "./values.ts";

/** A route whose transforms have not been opened yet. */
export type ReadRoute = Omit<RouteSettings, "transforms"> & {
  readonly transforms: readonly OpenTransform[];
  /** How answers are read if the application is given what Dapr delivers. Undefined: the file says how. */
  readonly daprReplies: HttpSettings["replies"] | undefined;
};
export type ReadRelay = Omit<RelaySettings, "routes"> & { readonly routes: readonly ReadRoute[] };

const key: Schema<KeyOrigin> = either(
  (value) => isObject(value) && "attribute" in value,
  convert(object("a key from an attribute", { attribute: text("the name of an attribute") }), ({ attribute }) => ({
    from: "attribute",
    name: attribute,
  })),
  convert(object("a key from JSON", { json: jsonPointer }), ({ json }) => ({ from: "json", pointer: json })),
);

const wrap = optional(
  object("how others are wrapped", {
    source: text("the source of the events, a URI reference"),
    type: text("the type of the events"),
  }),
);

const form: Schema<DeliveryForm> = either(
  isText,
  convert(oneOf("raw", "cloudevents"), (type): DeliveryForm => {
    return type === "raw" ? { type } : { type, mode: "structured", wrap: undefined };
  }),
  variants("type", {
    raw: object("the raw form", { type: oneOf("raw") }),
    cloudevents: object("the form cloudevents", {
      type: oneOf("cloudevents"),
      mode: withDefault(oneOf("structured", "binary"), "structured"),
      wrap,
    }),
    dapr: object("the form dapr", {
      type: oneOf("dapr"),
      pubsub: text("the name of a pubsub component"),
      topic: text("a topic"),
      wrap,
    }),
  }),
);

const ROUTE = {
  sources: list(source, 1),
  choice: withDefault(oneOf("strict", "weighted"), "strict"),
  concurrency: withDefault(integer(1, 100_000), DEFAULT_CONCURRENCY),
  transforms: withDefault(list(transform), []),
  key: optional(key),
  form: withDefault(form, { type: "raw" }),
  processor,
};

const keys: Schema<KeySettings> = convert(
  object("keys", {
    store: storeUrl,
    queue: queueName,
    lease: withDefault(duration(100, DAY_MS), DEFAULT_KEYS.leaseMs),
    waiting: withDefault(integer(0), DEFAULT_KEYS.waiting),
    wait: withDefault(duration(0, DAY_MS), DEFAULT_KEYS.waitMs),
    away: withDefault(duration(0, DAY_MS), DEFAULT_KEYS.awayMs),
  }),
  ({ store, queue, lease, waiting, wait, away }) => {
    return { store, queue, leaseMs: lease, waiting, waitMs: wait, awayMs: away };
  },
);

const admin: Schema<AdminSettings> = convert(
  object("admin settings", {
    host: withDefault(text("a host name or an address"), DEFAULT_ADMIN.host),
    port: withDefault(integer(0, 65_535), DEFAULT_ADMIN.port),
    token: optional(secret("a token of at least 32 characters", (given) => given.length >= 32)),
  }),
  ({ host, port, token }, at) => {
    const isLoopback = ["127.0.0.1", "::1", "localhost"].includes(host);
    if (token === undefined && !isLoopback)
      return at
        .field("token")
        .refuse("a token of at least 32 characters, because others can reach this host", "nothing");
    return { host, port, token };
  },
);

const GENERAL = {
  keys: optional(keys),
  admin: optional(admin),
  grace: withDefault(duration(0, HOUR_MS), DEFAULT_GRACE_MS),
};

const single = convert(object("a relay", { ...ROUTE, ...GENERAL }), (fields, at) =>
  relayOf([{ route: routeOf("main", fields), at }], fields),
);

const several = convert(object("a relay", { routes: record(object("a route", ROUTE)), ...GENERAL }), (fields, at) => {
  if (fields.routes.size === 0) return at.field("routes").refuse("at least one route", "none");
  const routes = Array.from(fields.routes, ([name, route]) => {
    return { route: routeOf(name, route), at: at.field("routes").field(name) };
  });
  return relayOf(routes, fields);
});

const described: Schema<ReadRelay> = either(
  (value) => isObject(value) && "routes" in value,
  several,
  single,
  "an object with sources and a processor, or with routes",
);

/** Names that begin with `x-` are their writer's own: the place for what YAML's anchors and merge keys share. */
export const relay: Schema<ReadRelay> = {
  expected: described.expected,
  read: (value, at) => described.read(isObject(value) ? withoutOwn(value) : value, at),
};

function withoutOwn(value: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !name.startsWith("x-")));
}

function routeOf(name: string, fields: ObjectOf<typeof ROUTE>): ReadRoute {
  // The form with one route has the relay's own fields beside the route's.
  const { sources, choice, concurrency, transforms } = fields;
  const { settings, saysReplies } = fields.processor;
  return {
    name,
    sources,
    choice,
    concurrency,
    transforms,
    key: fields.key,
    form: fields.form,
    processor: settings,
    daprReplies: saysReplies ? undefined : "dapr",
  };
}

function relayOf(
  placed: readonly { readonly route: ReadRoute; readonly at: Place }[],
  { keys: held, admin: port, grace }: ObjectOf<typeof GENERAL>,
): ReadRelay | Refused {
  const names = new Set<string>();
  let isTwice = false;
  let isCapped = false;
  for (const { route, at } of placed) {
    const most = mostAtOnce(route.processor);
    if (route.concurrency > most) {
      isCapped = true;
      at.field("concurrency").refuse(
        `no more than per_host of its processor, which is ${most}`,
        String(route.concurrency),
      );
    }
    for (const [index, { name }] of route.sources.entries()) {
      if (names.has(name)) {
        isTwice = true;
        at.field("sources").entry(index).field("name").refuse("another name than that of a source before it", name);
      }
      names.add(name);
    }
  }
  return isTwice || isCapped
    ? refused
    : { routes: placed.map(({ route }) => route), keys: held, admin: port, graceMs: grace };
}

/** A processor with one target delivers no more at a time than a host gets. */
function mostAtOnce(settings: ProcessorSettings): number {
  return settings.type === "http" && settings.target.type !== "attribute" ? settings.perHost : Infinity;
}
