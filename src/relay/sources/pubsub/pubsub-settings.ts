import type { OptionNames } from "../../../domain/options.ts";

export const DEFAULT_ACK_DEADLINE_MS = 60_000;
/** The most that one extension lasts, and so the longest that a message is kept away. */
export const LONGEST_ACK_DEADLINE_MS = 600_000;

export interface PubsubSettings {
  readonly name: string;
  /** In full: `projects/PROJECT/subscriptions/NAME`. */
  readonly subscription: string;
  /** Instead of Google, or of what PUBSUB_EMULATOR_HOST says: `host:port`, or a URL. */
  readonly endpoint: string | undefined;
  /** How long a message is held; extended at a third of it while it is in work. */
  readonly ackDeadlineMs: number;
  /**
   * In full: `projects/PROJECT/topics/NAME`, for messages that are given up. Undefined: that of the subscription's
   * policy, if it has one.
   */
  readonly deadLetterTopic: string | undefined;
}

export const PUBSUB_SETTINGS: OptionNames<PubsubSettings> = {
  name: true,
  subscription: true,
  endpoint: true,
  ackDeadlineMs: true,
  deadLetterTopic: true,
};
