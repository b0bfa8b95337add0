/**
 * Those who wait for messages of a queue that is asked by long polls.
 *
 * A long poll cannot be taken back: a request that is broken off may already have been given a message, which then
 * nobody sees until its hold runs out. So polls outlive those who asked for them:
 *
 *   asked ──message──▶ the first in line
 *     └──whoever asked has gone──▶ open still ──somebody asks──▶ adopted: no second poll is opened
 *                                     └──message──▶ kept for a moment ──somebody asks──▶ theirs
 *                                                        └──nobody──▶ given back
 *
 * Polls never ask for more messages than are waited for at that time.
 */
import { Closed } from "../../../domain/errors.ts";
import { isError } from "../../../domain/realms.ts";
import type { SourceMessage } from "../../source.ts";
import { Backoff } from "./backoff.ts";
import { Untried } from "./untried.ts";

export interface PollLineOptions {
  readonly name: string;
  /** How many messages one request may bring. */
  readonly most: number;
  /** How many long polls may be open. */
  readonly polls: number;
  /** How long the queue holds a poll open. */
  readonly waitMs: number;
  /**
   * Whether one request may ask for one message only. A queue that keeps groups in order may answer one request with
   * several messages of a group, which would then be worked on side by side; after one alone, it keeps the others back.
   */
  readonly isOneByOne: () => boolean;
  /** One request. Without `wait` it answers at once. The signal fires only when the line is closed. */
  readonly fetch: (request: FetchRequest) => Promise<readonly SourceMessage[]>;
  readonly random?: () => number;
}

export interface FetchRequest {
  readonly most: number;
  readonly wait: boolean;
  readonly signal: AbortSignal;
}

interface Waiter {
  readonly max: number;
  readonly resolve: (messages: readonly SourceMessage[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Poll {
  readonly most: number;
  readonly endsAt: number;
}

/**
 * A slot that gets free within this time takes a message that came too late for the one before; a busy relay does not
 * keep it from others.
 */
const KEPT_MS = 1_000;
/** How long a closing line waits for open polls before it breaks them off. */
const LINGER_MS = 2_000;
/** And how long for those that were broken off to have heard it. */
const BREAK_OFF_MS = 1_000;

export class PollLine {
  readonly #options: PollLineOptions;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  readonly #waiters = new Set<Waiter>();
  readonly #polls = new Map<Poll, Promise<void>>();
  readonly #kept = new Map<SourceMessage, NodeJS.Timeout>();
  /** Messages on their way back to the queue. */
  readonly #returning = new Set<Promise<void>>();
  /** What polls brought to nobody. */
  readonly #returned = new Untried();
  #isClosed = false;
  /** Set while polls are about to be opened. */
  #unschedule: (() => void) | undefined;

  constructor(options: PollLineOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random ?? Math.random);
  }

  async receive(max: number, signal: AbortSignal): Promise<readonly SourceMessage[]> {
    if (this.#isClosed) throw new Closed(`Source ${this.#options.name}`);
    const kept = this.#takeKept(max);
    if (kept.length > 0) return kept;
    return signal.aborted ? await this.#try(max) : await this.#wait(max, signal);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unschedule?.();
    for (const { reject } of this.#waiters) reject(new Closed(`Source ${this.#options.name}`));
    this.#waiters.clear();
    for (const message of this.#kept.keys()) void this.#giveBack(message);
    const open = Promise.all([...this.#returning, ...this.#polls.values()]);
    await withinMs(LINGER_MS, open);
    this.#closing.abort();
    // A request that cannot be broken off does not keep the process: what it brings is seen again after its hold.
    await withinMs(BREAK_OFF_MS, open);
  }

  async #try(max: number): Promise<readonly SourceMessage[]> {
    const { most, polls, isOneByOne, fetch } = this.#options;
    const ask = (count: number): Promise<readonly SourceMessage[]> =>
      fetch({ most: isOneByOne() ? 1 : count, wait: false, signal: this.#closing.signal });
    const first = await ask(Math.min(max, most));
    if (!isOneByOne() || first.length === 0 || max === 1) return first;
    // There was something, so there may be more in other groups.
    const others = await Promise.allSettled(Array.from({ length: Math.min(max - 1, polls) }, () => ask(1)));
    return [...first, ...others.flatMap((other) => (other.status === "fulfilled" ? other.value : []))];
  }

  #wait(max: number, signal: AbortSignal): Promise<readonly SourceMessage[]> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter);
        resolve([]);
      };
      const waiter: Waiter = {
        max,
        resolve: (messages) => {
          signal.removeEventListener("abort", leave);
          resolve(messages);
        },
        reject: (error) => {
          signal.removeEventListener("abort", leave);
          reject(isError(error) ? error : new Error(String(error)));
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiters.add(waiter);
      this.#schedule();
    });
  }

  /** What is asked for in one turn shares a request. After a failure nobody asks before the back-off is over. */
  #schedule(): void {
    if (this.#unschedule !== undefined || this.#isClosed) return;
    const delayMs = this.#backoff.leftMs();
    const open = (): void => {
      this.#unschedule = undefined;
      this.#open();
    };
    if (delayMs > 0) {
      const timer = setTimeout(open, delayMs);
      this.#unschedule = () => clearTimeout(timer);
    } else {
      const turn = setImmediate(open);
      this.#unschedule = () => clearImmediate(turn);
    }
  }

  #open(): void {
    const { polls, most, waitMs, isOneByOne } = this.#options;
    for (;;) {
      const missing = sum(this.#waiters, "max") - sum(this.#polls.keys(), "most");
      if (missing <= 0 || this.#polls.size >= polls || this.#isClosed) return;
      const poll = { most: isOneByOne() ? 1 : Math.min(most, missing), endsAt: performance.now() + waitMs };
      this.#polls.set(poll, this.#run(poll));
    }
  }

  async #run(poll: Poll): Promise<void> {
    try {
      const messages = await this.#options.fetch({ most: poll.most, wait: true, signal: this.#closing.signal });
      this.#backoff.reset();
      this.#polls.delete(poll);
      await this.#hand(messages);
    } catch (error) {
      this.#polls.delete(poll);
      this.#backoff.failed();
      for (const waiter of this.#take(poll.most)) waiter.reject(error);
    }
    if (this.#waiters.size > 0) this.#schedule();
  }

  async #hand(messages: readonly SourceMessage[]): Promise<void> {
    let rest = messages;
    for (const waiter of this.#waiters) {
      if (rest.length === 0) return;
      this.#waiters.delete(waiter);
      waiter.resolve(rest.slice(0, waiter.max));
      rest = rest.slice(waiter.max);
    }
    if (this.#isClosed) await Promise.all(rest.map((message) => this.#giveBack(message)));
    else for (const message of rest) this.#keep(message);
  }

  /** The waiters that a poll for so many messages was opened for, or who have taken their place. */
  *#take(most: number): Generator<Waiter> {
    let left = most;
    for (const waiter of this.#waiters) {
      if (left <= 0) return;
      this.#waiters.delete(waiter);
      left -= waiter.max;
      yield waiter;
    }
  }

  #keep(message: SourceMessage): void {
    const timer = setTimeout(() => void this.#giveBack(message), Math.min(KEPT_MS, message.holdMs / 3));
    this.#kept.set(message, timer);
  }

  #takeKept(max: number): readonly SourceMessage[] {
    const taken: SourceMessage[] = [];
    for (const [message, timer] of this.#kept) {
      if (taken.length >= max) break;
      clearTimeout(timer);
      this.#kept.delete(message);
      if (!message.lost.aborted) taken.push(message);
    }
    return taken;
  }

  /**
   * Each poll that brings it to nobody counts as a delivery, and it might be given up unseen. So it is kept away from
   * this line's own polls, and, if it has come before, for as long as polls last, from those that other relays left
   * open when they got busy.
   */
  #giveBack(message: SourceMessage): Promise<void> {
    const returning = this.#return(message).finally(() => this.#returning.delete(returning));
    this.#returning.add(returning);
    return returning;
  }

  /** Never rejects. */
  async #return(message: SourceMessage): Promise<void> {
    clearTimeout(this.#kept.get(message));
    this.#kept.delete(message);
    const ownMs = [...this.#polls.keys()].map(({ endsAt }) => endsAt - performance.now());
    const hasComeBefore = (message.attempt ?? 1) > 1 || this.#returned.of(message.id) > 0;
    const othersMs = hasComeBefore ? this.#options.waitMs : 0;
    this.#returned.note(message.id);
    try {
      await message.giveBack({ delayMs: this.#isClosed ? 0 : Math.max(othersMs, ...ownMs), countAttempt: false });
    } catch {
      // It comes back by itself when its hold runs out.
    }
  }
}

async function withinMs(ms: number, work: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  await Promise.race([work, over.promise]);
  clearTimeout(timer);
}

function sum<Field extends string>(all: Iterable<Readonly<Record<Field, number>>>, field: Field): number {
  let total = 0;
  for (const one of all) total += one[field];
  return total;
}
