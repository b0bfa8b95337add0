import type { OptionNames } from "../../../domain/options.ts";

/** As SQS has it for new queues. */
export const DEFAULT_VISIBILITY_MS = 30_000;
/** SQS holds no message for longer in all, however often it is extended. */
export const LONGEST_HOLD_MS: number = 12 * 3_600_000;

export interface SqsSettings {
  readonly name: string;
  /** A queue's name, or its URL. */
  readonly queue: string;
  /** Undefined: as the AWS SDK finds it, in the URL or in AWS_REGION. */
  readonly region: string | undefined;
  /** Instead of AWS: an emulator, or a private endpoint. */
  readonly endpoint: string | undefined;
  /**
   * How long a received message is hidden; extended at a third of it while it is in work. Rounded up to whole seconds.
   */
  readonly visibilityMs: number;
  /**
   * Name or URL of the queue for messages that are given up. Undefined: that of the queue's redrive policy, if it has
   * one.
   */
  readonly deadLetterQueue: string | undefined;
}

export const SQS_SETTINGS: OptionNames<SqsSettings> = {
  name: true,
  queue: true,
  region: true,
  endpoint: true,
  visibilityMs: true,
  deadLetterQueue: true,
};
