/** Streams and consumers as the API has them, as far as the engine uses that. */
export interface StreamConfig {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: "workqueue" | "limits";
  readonly storage: "file" | "memory";
  readonly num_replicas: number;
  readonly discard: "old" | "new";
  readonly allow_direct: boolean;
  readonly allow_rollup_hdrs: boolean;
  readonly allow_msg_ttl: boolean;
  readonly allow_msg_schedules: boolean;
  /** Streams of earlier versions do not say so. */
  readonly allow_atomic?: boolean;
  readonly deny_delete: boolean;
  readonly deny_purge: boolean;
  readonly max_msgs_per_subject: number;
  readonly max_msgs?: number;
  readonly max_bytes?: number;
  readonly max_age?: number;
  readonly duplicate_window: number;
  readonly first_seq?: number;
}

export interface StreamInfo {
  readonly config: StreamConfig;
  readonly state: {
    readonly messages: number;
    readonly bytes: number;
    readonly last_seq?: number;
    readonly num_subjects?: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
  readonly total?: number;
  readonly created: string;
  /** The server's clock. */
  readonly ts?: string;
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly { name: string; current: boolean; offline?: boolean }[];
  };
}

export interface ConsumerConfig {
  readonly durable_name: string;
  readonly filter_subject: string;
  readonly ack_policy: "explicit";
  readonly ack_wait: number;
  readonly max_deliver: number;
  readonly max_ack_pending: number;
  readonly max_waiting: number;
  readonly inactive_threshold?: number;
  readonly pause_until?: string;
}

export interface ConsumerInfo {
  /** One that was deleted and made anew has another moment here. */
  readonly created: string;
  readonly config: ConsumerConfig;
  readonly num_pending: number;
  readonly num_ack_pending: number;
  readonly num_waiting: number;
  /** All up to there were acknowledged, or are gone. */
  readonly ack_floor?: { readonly stream_seq: number };
  readonly paused?: boolean;
}
