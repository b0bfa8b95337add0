/** Of a stream's configuration, what the simulated server understands; the rest it keeps and repeats. */
export interface StreamConfig {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: "limits" | "workqueue";
  readonly max_msgs: number;
  readonly max_age: number;
  readonly max_msgs_per_subject: number;
  readonly duplicate_window: number;
  readonly allow_direct: boolean;
  readonly allow_rollup_hdrs: boolean;
  readonly allow_msg_ttl: boolean;
  readonly allow_msg_schedules?: boolean;
  readonly allow_atomic?: boolean;
  readonly deny_delete: boolean;
  readonly deny_purge: boolean;
}

const DEFAULTS = {
  retention: "limits",
  max_consumers: -1,
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  discard: "old",
  storage: "file",
  num_replicas: 1,
  duplicate_window: 120_000_000_000,
  compression: "none",
  allow_direct: false,
  mirror_direct: false,
  sealed: false,
  deny_delete: false,
  deny_purge: false,
  allow_rollup_hdrs: false,
  consumer_limits: {},
  allow_msg_ttl: false,
};

/** Zero means that there is no limit, too. */
const UNLIMITED = ["max_consumers", "max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size"];

export function completeStreamConfig(given: Readonly<Record<string, unknown>>, version: string): StreamConfig {
  const config: Record<string, unknown> = { subjects: [given["name"]], ...DEFAULTS, ...given };
  for (const name of UNLIMITED) if (config[name] === 0) config[name] = -1;
  if (config["duplicate_window"] === 0) config["duplicate_window"] = DEFAULTS.duplicate_window;
  // Schedules remove their predecessor the way a rollup does.
  if (config["allow_msg_schedules"] === true) config["allow_rollup_hdrs"] = true;
  const isNew = config["allow_msg_schedules"] === true || config["allow_atomic"] === true;
  const level = isNew ? "2" : config["allow_msg_ttl"] === true ? "1" : "0";
  const metadata = { "_nats.level": "5", "_nats.req.level": level, "_nats.ver": version };
  config["metadata"] = { ...(given["metadata"] as object | undefined), ...metadata };
  return config as unknown as StreamConfig;
}
