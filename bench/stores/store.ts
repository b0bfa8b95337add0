/** Where a subject keeps its items. */
export type StoreKind = "file" | "redis-everysec" | "redis-always" | "postgres" | "nats" | "nats-always";

export interface Store {
  /** Such as "Redis 7.0.15". */
  readonly version: string;
  /** How it is set, for whoever wants the same. */
  readonly settings: string;
  /** An empty one, for one measurement. */
  fresh(): Promise<FreshStore>;
  stop(): Promise<void>;
}

export interface FreshStore {
  readonly location: string;
  /** After much was loaded: what the server would do for itself within the next minute. */
  rest(): Promise<void>;
  /** What the server's processes hold, in MiB. Undefined: there is no server. */
  serverMemory(): number | undefined;
  drop(): Promise<void>;
}
