import type { Source } from "../../relay/source.ts";

/** The kind of queue that is put to the test. */
export interface SourceTarget {
  readonly name: string;
  /**
   * Makes a queue that no other case uses, empty. A message of it that is not extended comes again after about
   * `holdMs`.
   */
  create(holdMs: number): Promise<SourceQueue>;
  /** The shortest hold that the queue knows. Default 1,000: long enough for a busy machine to extend it in time. */
  readonly shortestHoldMs?: number | undefined;
  /** What the queue cannot do, with the reason, which is reported with the cases that are left out for it. */
  readonly cannot?: Readonly<Partial<Record<SourceNeed, string>>> | undefined;
  /** Names of cases with the reason for leaving them out. */
  readonly skip?: Readonly<Record<string, string>> | undefined;
}

export interface SourceQueue {
  /** One more handle, as another process would have. The suite closes it. */
  open(): Promise<Source>;
  send(message: SentMessage): Promise<void>;
  /** The data of the queue's own dead letters. */
  buried(): Promise<readonly string[]>;
  /** Lets go of what `create` made. */
  dispose(): Promise<void>;
}

export interface SentMessage {
  /** Text: some queues carry nothing else. */
  readonly data: string;
  readonly key?: string | undefined;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

/**
 * `attempts`: counts deliveries. `delay`: a message that goes back can stay away for a while. `attributes`: carries
 * texts beside the data. `keys`: keeps messages of one key in order, one at a time. `bury`: has dead letters of its
 * own. `uncount`: a message can go back as if it had not been received.
 */
export type SourceNeed = "attempts" | "delay" | "attributes" | "keys" | "bury" | "uncount";
