/**
 * The seam between the relay and a queue that it drains. A source hands out messages one by one and is told how each ended;
 * until then the message is this process's, for as long as it is extended. A new source is a folder in `sources/` and one run of the
 * conformance suite.
 *
 * Every method may reject with a `BatonError`. What was rejected did not surely happen, and may be repeated.
 */
export interface Source {
  /** As the configuration calls it. */
  readonly name: string;

  /**
   * Resolves with the next message as soon as there is one, without polling where the queue can hold a request open; undefined only when
   * `signal` fires. A message that raced with the signal is still returned: none is ever received that nobody hears of.
   */
  receive(signal: AbortSignal): Promise<SourceMessage | undefined>;

  /** Ends the connection. Messages under way are left to become visible again. */
  close(): Promise<void>;
}

export interface SourceMessage {
  readonly id: string;
  readonly data: Uint8Array;
  /** The data's media type where the queue knows it. */
  readonly contentType: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  /** What the queue itself keeps in order: a FIFO group, an ordering key, a Baton key. */
  readonly key: string | undefined;
  /** 1 for the first delivery; undefined where the queue does not count. */
  readonly attempt: number | undefined;
  /** When the message was put in the queue, in milliseconds since 1970. */
  readonly sentAt: number | undefined;
  /** The fence of the lease, where the source gives one. */
  readonly fence: number | undefined;
  /** Fires when the message is no longer this process's: another one may be working on it. */
  readonly lost: AbortSignal;

  /** Keeps the message this process's for another while. Sources say how long that is; the relay calls it at a third of it. */
  extend(): Promise<void>;
  /** How long one extension lasts. */
  readonly holdMs: number;

  /** It was handled: the queue forgets it. */
  acknowledge(): Promise<void>;

  /** Somebody shall try again, not before the delay has passed. `countAttempt` false: as if it had not been received, where the queue can. */
  giveBack(request: { readonly delayMs: number; readonly countAttempt: boolean }): Promise<void>;

  /** It is given up: moved to the queue's own dead letters. Undefined where the queue has none of its own that can be named. */
  readonly bury: ((reason: string) => Promise<void>) | undefined;
}
