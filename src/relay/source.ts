import type { Queue } from "../index.ts";

/**
 * The seam between the relay and a queue that it drains. A source hands out messages and is told how each ended; until
 * then a message is this process's, for as long as it is extended. A new source is a folder in `sources/` and one run
 * of the conformance suite.
 *
 * Every method may reject with a `BatonError`. What was rejected did not surely happen, and may be repeated.
 */
export interface Source {
  /** As the configuration calls it. */
  readonly name: string;
  /** For sources that are Baton queues: whoever has a message of it holds its key there. */
  readonly batonQueue?: Queue<unknown>;
  /**
   * What the `attempt` of its messages counts. `receipts`, unless said otherwise: also those after which a message went
   * back untried, so that a high number alone never is a reason to give one up. `deliveries`: what goes back uncounted
   * is not counted, and a message that ended the process each time can be told by its number.
   */
  readonly counts?: "receipts" | "deliveries";

  /**
   * False: messages that are given up have no place in the queue itself, which is said at the start. Undefined: it is
   * not known, or there is no need to say so.
   */
  readonly hasDeadLetters?: boolean | undefined;

  /**
   * Resolves with up to `max` messages as soon as there is at least one, without polling where the queue can hold a
   * request open; with none only when `signal` fires. A signal that has fired before makes it a try: it answers at once
   * with what there is. What raced with the signal is still returned: no message is ever received that nobody hears of.
   * The relay may have several calls under way, and asks for no more messages than it has free slots.
   */
  receive(request: ReceiveRequest): Promise<readonly SourceMessage[]>;

  /**
   * Asks whether the queue is there and may be used, without taking anything out of it; rejects with what is wrong. Left
   * out: that it could be opened says enough.
   */
  check?(): Promise<void>;

  /** Ends the connection. Messages under way are left to become visible again. */
  close(): Promise<void>;
}

export interface ReceiveRequest {
  readonly max: number;
  readonly signal: AbortSignal;
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

  /** How long one extension lasts; 0 where the source keeps its messages by itself and need not be asked. */
  readonly holdMs: number;
  /** Keeps the message this process's for another while. The relay calls it at a third of `holdMs`. */
  extend(): Promise<void>;

  /** It was handled: the queue forgets it. */
  acknowledge(): Promise<void>;

  /**
   * Somebody shall try again, not before the delay has passed. `countAttempt` false: as if it had not been received,
   * where the queue can.
   */
  giveBack(request: GiveBackRequest): Promise<void>;

  /**
   * It is given up: moved to the queue's own dead letters. Undefined where the queue has none of its own that can be
   * named.
   */
  readonly bury: ((reason: string) => Promise<void>) | undefined;
}

export interface GiveBackRequest {
  readonly delayMs: number;
  readonly countAttempt: boolean;
}
