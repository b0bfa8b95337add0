/** A message of a queue that hides what it handed out for a time, and shows it again when nobody says more. */
import type { Instant } from "../../../domain/clock.ts";
import { guessedType } from "../../media-type.ts";
import type { GiveBackRequest, SourceMessage } from "../../source.ts";
import { Hold, MessageLost } from "./hold.ts";
import type { Untried } from "./untried.ts";

export interface MessageParts {
  readonly source: string;
  readonly id: string;
  readonly data: Uint8Array;
  readonly attributes: Readonly<Record<string, string>>;
  readonly key: string | undefined;
  /** How often the queue says that it was received. */
  readonly attempt: number | undefined;
  readonly untried: Untried;
  readonly sentAt: number | undefined;
  /** A moment before the queue gave it away, as near as is known. Left out: now. */
  readonly since?: Instant;
  /** What the queue gave it when it was received. */
  readonly firstHoldMs: number;
  /** What each extension asks for. */
  readonly holdMs: number;
  readonly queue: MessageQueue;
}

/**
 * What the queue does with one message. Each rejects with `MessageLost` when the queue says that the message is not
 * held any more.
 */
export interface MessageQueue {
  /** How long a message may be held in all, and how long it can be kept away. */
  readonly longestHoldMs: number;
  readonly longestDelayMs: number;
  /** Nobody sees the message for this time, counted from now. */
  hide(ms: number): Promise<void>;
  remove(): Promise<void>;
  /** Writes a copy to the dead letters; undefined where there are none. */
  readonly copyToDeadLetters: ((reason: string) => Promise<void>) | undefined;
}

export class HeldMessage implements SourceMessage {
  readonly id: string;
  readonly data: Uint8Array;
  readonly contentType: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  readonly key: string | undefined;
  readonly attempt: number | undefined;
  readonly sentAt: number | undefined;
  readonly fence: undefined;
  readonly bury: ((reason: string) => Promise<void>) | undefined;
  readonly #queue: MessageQueue;
  readonly #untried: Untried;
  readonly #hold: Hold;
  readonly #since = performance.now();
  readonly #extensionMs: number;
  #holdMs: number;

  constructor(parts: MessageParts) {
    this.id = parts.id;
    this.data = parts.data;
    this.attributes = parts.attributes;
    this.contentType = contentTypeOf(parts.attributes) ?? guessedType(parts.data);
    this.key = parts.key;
    this.#untried = parts.untried;
    this.attempt = parts.attempt === undefined ? undefined : Math.max(1, parts.attempt - parts.untried.of(parts.id));
    this.sentAt = parts.sentAt;
    this.#extensionMs = parts.holdMs;
    this.#holdMs = parts.firstHoldMs;
    this.#queue = parts.queue;
    this.#hold = new Hold(parts.source, parts.id, parts.firstHoldMs, parts.since);
    const copy = parts.queue.copyToDeadLetters;
    this.bury = copy === undefined ? undefined : (reason) => this.#bury(reason, copy);
  }

  get lost(): AbortSignal {
    return this.#hold.lost;
  }

  get holdMs(): number {
    return this.#holdMs;
  }

  async extend(): Promise<void> {
    this.#hold.check();
    const leftMs = this.#queue.longestHoldMs - (performance.now() - this.#since);
    // What is left is too short to be asked for in whole seconds: the queue would refuse.
    if (leftMs < 2_000) throw this.#hold.lose("it was held for as long as the queue allows");
    const forMs = Math.min(this.#extensionMs, leftMs - 1_000);
    const since = this.#hold.now();
    await this.#tell(() => this.#queue.hide(forMs));
    this.#hold.extended(since, forMs);
    this.#holdMs = forMs;
  }

  async acknowledge(): Promise<void> {
    this.#hold.check();
    await this.#tell(() => this.#queue.remove());
    this.#untried.forget(this.id);
    this.#hold.end();
  }

  async giveBack({ delayMs, countAttempt }: GiveBackRequest): Promise<void> {
    this.#hold.check();
    const { longestHoldMs, longestDelayMs } = this.#queue;
    const leftMs = longestHoldMs - (performance.now() - this.#since) - 1_000;
    await this.#tell(() => this.#queue.hide(Math.max(0, Math.min(delayMs, longestDelayMs, leftMs))));
    if (!countAttempt) this.#untried.note(this.id);
    this.#hold.end();
  }

  /** The copy first: whoever dies between the two leaves a second copy behind, and loses nothing. */
  async #bury(reason: string, copy: (reason: string) => Promise<void>): Promise<void> {
    this.#hold.check();
    await copy(reason);
    await this.acknowledge();
  }

  async #tell(request: () => Promise<void>): Promise<void> {
    try {
      await request();
    } catch (error) {
      if (error instanceof MessageLost) throw this.#hold.lose("the queue does not know this delivery any more", error);
      throw error;
    }
  }
}

/**
 * Queues have no place for it of their own; publishers put it into an attribute. What could not be a header is not one.
 */
function contentTypeOf(attributes: Readonly<Record<string, string>>): string | undefined {
  const found = Object.entries(attributes).find(([name]) => /^(content[-_]?type|datacontenttype)$/i.test(name));
  return found !== undefined && /^[^\s/;]+\/[^\s/;]+(?:\s*;.*)?$/.test(found[1]) && /^[ -~]+$/.test(found[1])
    ? found[1]
    : undefined;
}
