import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../domain/clock.ts";
import { BatonError, OutcomeUnknown } from "../domain/errors.ts";
import { Unanswered } from "./http.ts";

/** An election takes Consul a second or two, and up to ten on slow machines; whoever only tries is told sooner. */
const PATIENCE_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** What comes in from outside. */
export interface Outside {
  readonly clock: Clock;
  readonly random: () => number;
}

/** Waits while Consul does not answer, at growing intervals that differ from one process to the next. */
export class Patience {
  readonly #outside: Outside;
  readonly #what: string;
  readonly #limitMs: number;
  /** Monotonic: when the first answer failed to come. */
  #began: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #isDoubtful = false;

  constructor(outside: Outside, what: string, limitMs: number = PATIENCE_MS) {
    this.#outside = outside;
    this.#what = what;
    this.#limitMs = limitMs;
  }

  /** Resolves when it is time to ask again, or the signal fires. Throws when it has taken too long. */
  async pause(unanswered: Unanswered, signal?: AbortSignal): Promise<void> {
    this.#isDoubtful ||= unanswered.isDoubtful;
    const now = this.#outside.clock.monotonic();
    this.#began ??= now;
    if (now - this.#began >= this.#limitMs) throw this.#end(unanswered);
    const pauseMs = this.#pauseMs * (0.5 + this.#outside.random());
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    // Not a reason to fail: whoever fired it looks at it next.
    await sleep(pauseMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  }

  /** An answer came: what follows is another outage. */
  reset(): void {
    this.#began = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#isDoubtful = false;
  }

  #end(cause: Unanswered): BatonError {
    if (this.#isDoubtful) return new OutcomeUnknown(`${this.#what} (${cause.message})`, { cause });
    return new BatonError(
      "STORE_UNAVAILABLE",
      `Consul does not answer to ${this.#what}: ${cause.message}. Nothing was done. ` +
        "Is it running, does it have a leader, and are the address and the certificates right?",
      { cause },
    );
  }
}

/** Consul may come back: whoever has time waits for it. A refusal is none. */
export function isOutage(error: unknown): boolean {
  return error instanceof BatonError && error.cause instanceof Unanswered;
}

/** For what can be done twice without harm. */
export async function persist<T>(outside: Outside, what: string, ask: () => Promise<T>): Promise<T> {
  const patience = new Patience(outside, what);
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      await patience.pause(error);
    }
  }
}
