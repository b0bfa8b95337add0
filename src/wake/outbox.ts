import type { Clock } from "../domain/clock.ts";
import type { Hints } from "./hints.ts";
import type { WakeAdapter, WakeMessage } from "./port.ts";
import { type Entry, writeTexts } from "./text.ts";
import { within } from "./within.ts";

/** The three signals. */
export type Signal = "work" | "ended" | "lost";

/** A carrier that takes longer is not waited for: what came together meanwhile is tried anew. */
const SEND_MS = 5_000;
/** More outcomes at a time are not worth naming: whoever waits for one of this queue looks. */
const MOST_IDS = 500;
/** With so much of it, a flood of lost leases is told in part only; whoever is not told finds out by itself. */
const MOST_LOST = 1_000;

export interface OutboxParts {
  readonly adapter: WakeAdapter;
  readonly hints: Hints;
  readonly sender: string;
  readonly clock: Clock;
  readonly channelOf: (signal: Signal) => string;
  readonly budgetOf: (queue: string) => string;
  readonly trouble: (error: unknown) => void;
}

/**
 * What is to be sent. Everything of one turn of the event loop, and everything that comes while a sending is under way, goes together, so
 * that a busy process sends no more than the carrier takes. Nothing here fails or holds up the one who has something to tell.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  #work = new Map<string, number>();
  readonly #stirred = new Set<string>();
  /** Undefined: more than are worth naming. */
  #ended = new Map<string, Set<string> | undefined>();
  #lost: Entry[] = [];
  #sending: Promise<void> | undefined;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  work(queue: string, count: number): void {
    this.#work.set(queue, (this.#work.get(queue) ?? 0) + count);
    this.#sendSoon();
  }

  /** Everybody who waits in the queue. */
  stir(queue: string): void {
    this.#stirred.add(queue);
    this.#sendSoon();
  }

  ended(queue: string, ids: readonly string[] | undefined): void {
    const before = this.#ended.has(queue) ? this.#ended.get(queue) : new Set<string>();
    const known = ids === undefined ? undefined : before;
    for (const id of ids ?? []) known?.add(id);
    this.#ended.set(queue, known !== undefined && known.size <= MOST_IDS ? known : undefined);
    this.#sendSoon();
  }

  lost(lease: Entry): void {
    if (this.#lost.length < MOST_LOST) this.#lost.push(lease);
    this.#sendSoon();
  }

  /** Resolves when everything was sent, or has failed. */
  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  get #isEmpty(): boolean {
    return this.#work.size + this.#stirred.size + this.#ended.size + this.#lost.length === 0;
  }

  #sendSoon(): void {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    // The rest of this turn may have more to tell.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (!this.#isEmpty) {
      const work = this.#work;
      this.#work = new Map();
      // Only those who are woken for work wait for the budget.
      await Promise.all([this.#publish(this.#takeNews()), this.#sendWork(work)]);
    }
  }

  #takeNews(): readonly WakeMessage[] {
    const ended = [...this.#ended].flatMap(([queue, ids]): Entry[] =>
      ids === undefined ? [[queue]] : [...ids].map((id) => [queue, id]),
    );
    const lost = this.#lost;
    const stirred = [...this.#stirred].map((queue): Entry => [queue]);
    this.#stirred.clear();
    this.#ended = new Map();
    this.#lost = [];
    return [...this.#messages("work", stirred), ...this.#messages("ended", ended), ...this.#messages("lost", lost)];
  }

  /** The budget first: whoever hears of the work looks there. */
  async #sendWork(work: ReadonlyMap<string, number>): Promise<void> {
    const { hints, budgetOf } = this.#parts;
    const entries = [...work].map(async ([queue, count]): Promise<Entry> => {
      const isBudgeted = await hints.add(budgetOf(queue), count);
      return [queue, count, isBudgeted ? 1 : 0];
    });
    await this.#publish(this.#messages("work", await Promise.all(entries)));
  }

  #messages(signal: Signal, entries: readonly Entry[]): readonly WakeMessage[] {
    const { sender, channelOf } = this.#parts;
    return writeTexts(sender, entries).map((text) => ({ channel: channelOf(signal), text }));
  }

  async #publish(messages: readonly WakeMessage[]): Promise<void> {
    if (messages.length === 0) return;
    const { adapter, clock, trouble } = this.#parts;
    await within(clock, SEND_MS, adapter.publish(messages), trouble);
  }
}
