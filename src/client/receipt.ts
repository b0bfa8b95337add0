import { type Duration, formatDuration, parseDuration } from "../domain/duration.ts";
import { BatonError } from "../domain/errors.ts";
import type { Failure } from "../domain/failure.ts";
import { checkOptions, checkSignal, type OptionNames } from "../domain/options.ts";
import { decodePayload } from "../domain/payload.ts";
import type { Accepted, AttemptReport } from "../engine/port.ts";
import type { Shared } from "./shared.ts";

export interface OutcomeOptions {
  /** How long to wait. Default: for ever. */
  readonly timeout?: Duration | undefined;
  readonly signal?: AbortSignal | undefined;
}

const OUTCOME_OPTIONS: OptionNames<OutcomeOptions> = { timeout: true, signal: true };

/** How an item ended. */
export interface ItemOutcome {
  readonly state: "done" | "dead" | "cancelled" | "replaced";
  readonly at: number;
  readonly attempt: number;
  /** What the handler returned. */
  readonly result?: unknown;
  /** The handler returned something that could not be kept, and why. The item is done all the same. */
  readonly resultMissing?: string;
  /** Why it was given up. */
  readonly failure?: Failure;
  /** The last few of its attempts that came to nothing, oldest first; of a dead letter the last one too. */
  readonly attempts?: readonly AttemptReport[];
}

/** The item is accepted: it will end done, dead, cancelled or replaced. */
export class Receipt {
  readonly id: string;
  readonly key: string;
  readonly level: string;
  readonly at: number;
  /** The id was known: this is the receipt of the first submission. */
  readonly duplicate: boolean;
  /** Mode latest: the items that this one replaced. */
  readonly replaced: readonly string[];
  readonly #shared: Shared;
  readonly #queue: string;
  readonly #kept: boolean;

  constructor(shared: Shared, queue: string, accepted: Accepted, keepMs: number) {
    this.id = accepted.id;
    this.key = accepted.key;
    this.level = accepted.level;
    this.at = accepted.at;
    this.duplicate = accepted.duplicate;
    this.replaced = accepted.replaced;
    this.#shared = shared;
    this.#queue = queue;
    this.#kept = keepMs > 0;
  }

  /** Waits until the item has ended. Needs an id, or a queue or submission with `history`. */
  async outcome(options: OutcomeOptions = {}): Promise<ItemOutcome> {
    const { timeout, signal } = checkOptions(options, OUTCOME_OPTIONS);
    const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout, "timeout");
    checkSignal(signal);
    if (!this.#kept) throw notKept(this.id);
    const giveUp = new AbortController();
    const abort = (): void => giveUp.abort();
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort);
    const cancelTimer = timeoutMs === undefined ? undefined : callAfter(timeoutMs, abort);
    try {
      const outcome = await this.#shared.engine.outcome({ queue: this.#queue, id: this.id, signal: giveUp.signal });
      if (outcome !== undefined) {
        const { result, ...rest } = outcome;
        return result === undefined ? rest : { ...rest, result: decodePayload(result) };
      }
    } finally {
      cancelTimer?.();
      signal?.removeEventListener("abort", abort);
    }
    signal?.throwIfAborted();
    if (!giveUp.signal.aborted) {
      // A connection that was closed meanwhile says so here.
      await this.#shared.engine.find({ queue: this.#queue, id: this.id });
      throw notKept(this.id);
    }
    throw new BatonError(
      "OUTCOME_TIMEOUT",
      `Item ${this.id} has not ended within ${formatDuration(timeoutMs ?? 0)}. It is still in the queue; wait again, look with item(), or cancel it.`,
    );
  }
}

/** Node fires timers at once that are set further ahead than this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function callAfter(ms: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (left: number): void => {
    const step = Math.min(left, LONGEST_TIMER_MS);
    timer = setTimeout(() => (left > step ? wait(left - step) : callback()), step);
  };
  wait(ms);
  return () => clearTimeout(timer);
}

function notKept(id: string): BatonError {
  return new BatonError(
    "OUTCOME_NOT_KEPT",
    `How item ${id} ends is not kept. Submit with an id, or with history: "1h", or set history on the queue.`,
  );
}
