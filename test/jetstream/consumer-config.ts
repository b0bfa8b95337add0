/** Of a consumer's configuration, what the simulated server understands; the rest it keeps and repeats. */
export interface ConsumerConfig {
  readonly name: string;
  readonly durable_name?: string;
  readonly deliver_policy: string;
  readonly opt_start_seq?: number;
  readonly ack_policy: string;
  readonly ack_wait: number;
  readonly max_deliver: number;
  readonly filter_subject?: string;
  readonly filter_subjects?: readonly string[];
  readonly max_waiting: number;
  readonly max_ack_pending: number;
  readonly inactive_threshold?: number;
  readonly pause_until?: string;
}

const EPHEMERAL_NANOS = 5_000_000_000;

export function completeConsumerConfig(given: Readonly<Record<string, unknown>>, version: string): ConsumerConfig {
  const level = given["pause_until"] === undefined ? "0" : "1";
  const config: Record<string, unknown> = {
    deliver_policy: "all",
    ack_policy: "none",
    replay_policy: "instant",
    max_deliver: -1,
    num_replicas: 0,
    ...given,
    metadata: {
      ...(given["metadata"] as object | undefined),
      "_nats.level": "5",
      "_nats.req.level": level,
      "_nats.ver": version,
    },
  };
  config["ack_wait"] = orElse(given["ack_wait"], 30_000_000_000);
  config["max_deliver"] = orElse(given["max_deliver"], -1);
  config["max_waiting"] = orElse(given["max_waiting"], 512);
  config["max_ack_pending"] = orElse(given["max_ack_pending"], 1_000);
  if (given["durable_name"] === undefined) {
    config["inactive_threshold"] = orElse(given["inactive_threshold"], EPHEMERAL_NANOS);
  }
  if (given["filter_subject"] === "") delete config["filter_subject"];
  return config as unknown as ConsumerConfig;
}

export function filtersOf({ filter_subject: one, filter_subjects: many }: ConsumerConfig): readonly string[] {
  if (many !== undefined && many.length > 0) return many;
  return one === undefined ? [] : [one];
}

/** Zero is what Go has for nothing. */
function orElse(given: unknown, otherwise: number): unknown {
  return given === undefined || given === 0 ? otherwise : given;
}
