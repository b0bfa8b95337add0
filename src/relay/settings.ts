/**
 * A relay's settings in the one form that the relay works with: complete and checked. The configuration reader makes
 * them out of files; a program may write them by hand, with the defaults below. Nothing here has been opened: `open` of
 * a source, and the stores, are used when the relay starts.
 */
import type { Baton } from "../index.ts";
import type { PackageName } from "./check/package-name.ts";
import type { Source } from "./source.ts";
import type { Content, Transform } from "./transform.ts";

export interface RelaySettings {
  /**
   * Each has its own slots and its own processor, so that a receiver that hangs delays nobody else's messages. Names
   * are unique.
   */
  readonly routes: readonly RouteSettings[];
  /** Undefined: messages are exclusive only as far as their source makes them so. */
  readonly keys: KeySettings | undefined;
  /** Undefined: no port is opened. */
  readonly admin: AdminSettings | undefined;
  /**
   * How long deliveries may go on when the relay is stopped, before they are broken off and their messages given back.
   */
  readonly graceMs: number;
  /** What the reader of a configuration found odd. Said when the relay starts. */
  readonly warnings?: readonly string[];
}

/** Which sources go to which processor. */
export interface RouteSettings {
  readonly name: string;
  /** The most urgent first. Names are unique within the relay. */
  readonly sources: readonly SourceSettings[];
  /**
   * `strict`: a source is asked only when those before it are empty. `weighted`: each gets its share, so that none
   * starves.
   */
  readonly choice: "strict" | "weighted";
  /** How many messages are in work at a time. No more are taken from the sources. */
  readonly concurrency: number;
  /** In order, before anything looks at the content. */
  readonly transforms: readonly Transform[];
  /** Where the key of a message is found. Undefined: the source's own, if it has one. */
  readonly key: KeyOrigin | undefined;
  readonly form: DeliveryForm;
  readonly processor: ProcessorSettings;
}

export interface SourceSettings {
  readonly name: string;
  /** The share in weighted choice: 1 or more. */
  readonly weight: number;
  readonly retry: RelayRetry;
  readonly deadLetter: DeadLetterSettings;
  /** Optional packages that `open` needs: those that are missing are named before anything is opened. */
  readonly packages?: readonly PackageName[];
  /** Called when the relay starts. Drivers are loaded here and not before. */
  readonly open: () => Promise<Source>;
  /**
   * Asks whether the queue is there, where opening it would make it. Resolves with a remark for people, if there is one. Left
   * out: it is opened, asked and closed.
   */
  readonly look?: () => Promise<string | undefined>;
}

export interface RelayRetry {
  /** How often a message is delivered in all before it is given up; Infinity leaves that to the source. */
  readonly attempts: number;
  /** The longest back-off before the second attempt; doubles with each, with full jitter. */
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  /** Always the same, instead of a back-off. */
  readonly delayMs?: number;
  /**
   * A message that is older is given up when a delivery of it fails, or cannot be made because the application is not
   * reached. Left out: no message is too old.
   */
  readonly maxAgeMs?: number;
}

/** Where a message goes that is given up. */
export type DeadLetterSettings =
  /**
   * The source's own. One that has none keeps the message, which comes back after the longest back-off; it is not
   * delivered again if it was refused for good.
   */
  | { readonly to: "source" }
  /** A Baton queue: the message is an item of it, under the message's key. */
  | { readonly to: "queue"; readonly store: string; readonly queue: string }
  /** One line of JSON per message. */
  | { readonly to: "file"; readonly path: string }
  | { readonly to: "drop" };

export type KeyOrigin =
  | { readonly from: "attribute"; readonly name: string }
  /** An RFC 6901 pointer into the JSON content: `/customer/id`. */
  | { readonly from: "json"; readonly pointer: string };

/**
 * One message per key at a time, across all sources, relays and Baton workers that use the same queue of the same
 * store.
 */
export interface KeySettings {
  /** Any Baton store by its URL; or a connection, which stays yours to close. */
  readonly store: string | Baton;
  /** The queue whose keys are held. */
  readonly queue: string;
  readonly leaseMs: number;
  /**
   * How many messages of busy keys may wait in this process, beside those in work. Those beyond go back to their
   * source.
   */
  readonly waiting: number;
  /** How long such a message waits here before it goes back too. */
  readonly waitMs: number;
  /** How long a message that goes back for its busy key stays away. */
  readonly awayMs: number;
}

export type DeliveryForm =
  | { readonly type: "raw" }
  | { readonly type: "cloudevents"; readonly mode: "structured" | "binary"; readonly wrap: EventWrap | undefined }
  /** Structured, with the extensions that Dapr adds. */
  | { readonly type: "dapr"; readonly pubsub: string; readonly topic: string; readonly wrap: EventWrap | undefined };

/** How content that is not a CloudEvent becomes one. Without it such content is bad data. */
export interface EventWrap {
  readonly source: string;
  readonly type: string;
}

export type ProcessorSettings = FunctionSettings | HttpSettings | CommandSettings;

export interface FunctionSettings {
  readonly type: "function";
  readonly run: RelayHandler;
  readonly timeoutMs: number;
}

/**
 * What it returns is not looked at. Errors as in a worker: any means retry, `Fatal` gives up, `RetryLater` says when.
 */
export type RelayHandler = (message: RelayMessage) => unknown;

/** A message as a processor sees it. */
export interface RelayMessage extends Content {
  readonly id: string;
  readonly source: string;
  readonly key: string | undefined;
  readonly attempt: number;
  /** What the form of the route puts beside the data: `ce-…` in binary mode. */
  readonly headers: Readonly<Record<string, string>>;
  /** Rises with each lease of the key, where there is one. */
  readonly fence: number | undefined;
  readonly sentAt: number | undefined;
  /** Fires when the work is to end: its time is up, the message or its key is lost, or the relay stops. */
  readonly signal: AbortSignal;
}

export interface HttpSettings {
  readonly type: "http";
  readonly target: HttpTarget;
  readonly method: "POST" | "PUT" | "PATCH" | "GET";
  readonly headers: Readonly<Record<string, string>>;
  /** Instead of the message's own. */
  readonly contentType: string | undefined;
  /** For one delivery in all. The source's hold and the key's lease are kept meanwhile. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Requests under way per host. */
  readonly perHost: number;
  readonly fatal: FatalSettings;
  /** `status`: the status decides. `dapr`: a 2xx with a body of SUCCESS, RETRY or DROP too, and 404 means drop. `dapr-body`: without that. */
  readonly replies: "status" | "dapr" | "dapr-body";
  /** Undefined: none. */
  readonly breaker: BreakerSettings | undefined;
  /** Secrets `whsec_…`: every one signs, so that receivers may change over. Empty: unsigned. */
  readonly signingSecrets: readonly string[];
}

export type HttpTarget =
  | { readonly type: "url"; readonly url: string }
  /** `url` is the application; its `GET /dapr/subscribe` says which path is for this topic of this pubsub. */
  | { readonly type: "dapr-subscription"; readonly url: string; readonly pubsub: string; readonly topic: string }
  /** The message says where: only https, only these hosts, and only public addresses unless `privateAddresses`. */
  | {
      readonly type: "attribute";
      readonly name: string;
      /** Exact names, or `*.example.com`. */
      readonly hosts: readonly string[];
      readonly plainHttp: boolean;
      readonly privateAddresses: boolean;
    };

export interface FatalSettings {
  /** HTTP statuses, or exit codes of a command, that mean "do not try again". */
  readonly codes: readonly number[];
  readonly action: "dead-letter" | "drop";
}

export interface BreakerSettings {
  /**
   * So many failures in a row, of different keys, open the circuit of a target. One that cannot be reached at all opens
   * it at once.
   */
  readonly failures: number;
  /**
   * How long nothing is sent after failures; then a single delivery probes. A target that could not be reached is probed
   * as soon as it accepts a connection.
   */
  readonly openMs: number;
}

export interface CommandSettings {
  readonly type: "command";
  readonly command: string;
  readonly arguments: readonly string[];
  /** Exit codes beside 65. */
  readonly fatal: FatalSettings;
  readonly timeoutMs: number;
}

export interface AdminSettings {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Needed on every host but loopback. */
  readonly token: string | undefined;
}

export const DEFAULT_CONCURRENCY = 10;
export const DEFAULT_GRACE_MS = 20_000;
export const DEFAULT_WEIGHT = 1;
export const DEFAULT_RETRY: RelayRetry = { attempts: 5, backoffMs: 1_000, maxBackoffMs: 300_000 };
export const DEFAULT_DEAD_LETTER: DeadLetterSettings = { to: "source" };

export const DEFAULT_KEYS: Omit<KeySettings, "store" | "queue"> = {
  leaseMs: 30_000,
  waiting: 100,
  waitMs: 60_000,
  awayMs: 5_000,
};

export const DEFAULT_HTTP: Omit<HttpSettings, "target"> = {
  type: "http",
  method: "POST",
  headers: {},
  contentType: undefined,
  timeoutMs: 60_000,
  connectTimeoutMs: 5_000,
  perHost: 1_000,
  fatal: { codes: [], action: "dead-letter" },
  replies: "status",
  breaker: { failures: 10, openMs: 10_000 },
  signingSecrets: [],
};

export const DEFAULT_COMMAND: Omit<CommandSettings, "command"> = {
  type: "command",
  arguments: [],
  fatal: { codes: [], action: "dead-letter" },
  timeoutMs: 3_600_000,
};

/** Beside that of `baton serve`. */
export const DEFAULT_ADMIN: AdminSettings = { host: "127.0.0.1", port: 7_601, token: undefined };
