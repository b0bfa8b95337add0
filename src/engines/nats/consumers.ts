/** Consumers: what Baton needs of them, and in what those that exist differ from it. They are compared, and never changed. */
import { BatonError } from "../../domain/errors.ts";
import type { ConsumerConfig, ConsumerInfo } from "./api-types.ts";
import type { JetStream } from "./jetstream.ts";
import { Lost } from "./requests.ts";

/** A delivery that is not taken up for so long goes to somebody else: its receiver is gone, or stopped. */
export const ACK_WAIT_MS = 1_000;
/** Pulls that wait at one consumer: one per process and level. */
const MOST_WAITING = 4_096;
const MOST_PENDING = 50_000;
/** Far in the future. */
export const FOR_EVER: number = Date.UTC(2999, 0);

/** What a server may say of a consumer beside what Baton sets. */
export interface FoundConfig extends ConsumerConfig {
  readonly deliver_policy?: string;
  readonly deliver_subject?: string;
  readonly filter_subjects?: readonly string[];
  readonly headers_only?: boolean;
  readonly backoff?: readonly number[];
  readonly max_batch?: number;
  readonly max_expires?: number;
  readonly max_bytes?: number;
  readonly priority_policy?: string;
}

export function consumerConfig(name: string, filter: string, paused = false): ConsumerConfig {
  return {
    durable_name: name,
    filter_subject: filter,
    ack_policy: "explicit",
    ack_wait: ACK_WAIT_MS * 1e6,
    max_deliver: -1,
    max_ack_pending: MOST_PENDING,
    max_waiting: MOST_WAITING,
    ...(paused ? { pause_until: new Date(FOR_EVER).toISOString() } : {}),
  };
}

export interface EnsuredConsumer {
  readonly consumer: ConsumerInfo;
  /** By this very call, or by another one at the same time. */
  readonly isNew: boolean;
}

/** Any number of processes may do so at once: one makes it, and all compare it. */
export async function ensureConsumer(js: JetStream, stream: string, config: ConsumerConfig): Promise<EnsuredConsumer> {
  const name = config.durable_name;
  const known = await js.consumerInfo(stream, name);
  const found = known ?? (await js.createConsumer(stream, config)) ?? (await js.consumerInfo(stream, name));
  // Somebody deletes what is being made; or in a cluster not every server knows of it yet.
  if (found === undefined) throw new Lost(`${stream}.${name}`);
  const wrong = unusable(found.config, config);
  if (wrong.length === 0) return { consumer: found, isNew: known === undefined };
  throw new BatonError(
    "STORE_UNAVAILABLE",
    `The consumer ${name} of stream ${stream} exists, but was not made for Baton: ${wrong.join("; ")}. Nothing was changed. ` +
      "Use another prefix, or remove the consumer: Baton makes it anew, and nothing is lost with it.",
  );
}

/** With these keys would not be handed out, or not all, or some twice as a rule. */
export function unusable(is: FoundConfig, wanted: ConsumerConfig): readonly string[] {
  return [
    ...differ("filter_subject", is.filter_subject, wanted.filter_subject),
    ...differ("filter_subjects", is.filter_subjects, undefined),
    ...differ("ack_policy", is.ack_policy, wanted.ack_policy),
    // One that gives up on messages would leave keys behind that nobody hears of.
    ...differ("max_deliver", is.max_deliver, wanted.max_deliver),
    ...differ("deliver_policy", is.deliver_policy ?? "all", "all"),
    ...differ("deliver_subject", is.deliver_subject, undefined),
    ...differ("headers_only", is.headers_only ?? false, false),
    ...differ("priority_policy", is.priority_policy === "none" ? undefined : is.priority_policy, undefined),
    // Pulls that ask for more are refused.
    ...(["max_batch", "max_expires", "max_bytes"] as const).flatMap((limit) => differ(limit, is[limit] ?? 0, 0)),
  ];
}

/** Baton works with these, but slower, or only up to a point. */
export function unlike(is: FoundConfig, wanted: ConsumerConfig): readonly string[] {
  return [
    ...differ("ack_wait", is.ack_wait, wanted.ack_wait),
    ...differ("max_ack_pending", is.max_ack_pending, wanted.max_ack_pending),
    ...differ("max_waiting", is.max_waiting, wanted.max_waiting),
    ...differ("backoff", is.backoff, undefined),
    ...differ("inactive_threshold", is.inactive_threshold ?? 0, 0),
  ];
}

export function differ(what: string, is: unknown, should: unknown): readonly string[] {
  const [found, wanted] = [is, should].map((value) => JSON.stringify(value));
  if (found === wanted) return [];
  return [
    wanted === undefined ? `${what} is set, to ${found ?? ""}` : `${what} is ${found ?? "not set"}, not ${wanted}`,
  ];
}
