import type { Clock } from "../domain/clock.ts";
import type { Hints } from "./hints.ts";
import type { WakeAdapter, WakeMessage } from "./port.ts";
import { type Entry, writeTexts } from "./text.ts";
import { within } from "./within.ts";

/** The three signals. */
export type Signal = "work" | "ended" | "lost";

type News = Readonly<Record<Signal, readonly Entry[]>>;

const SIGNALS: readonly Signal[] = ["work", "ended", "lost"];

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
  /** The carrier took what was sent. */
  readonly sent: () => void;
  readonly trouble: (error: unknown) => void;
  /** Nobody was told of these: their store may have another way. */
  readonly untold: (signal: Signal, entries: readonly Entry[]) => void;
}

/**
 * What is to be sent. Everything of one turn of the event loop, and everything that comes while a sending is under way, goes together, so
 * that a busy process sends no more than the carrier takes. Nothing here fails or holds up the one who has something to tell. Work waits for
 * its budget to be answered; nothing else does.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  #work = new Map<string, number>();
  readonly #stirred = new Set<string>();
  /** Undefined: more than are worth naming. */
  #ended = new Map<string, Set<string> | undefined>();
  #lost: Entry[] = [];
  #sendingWork: Promise<void> | undefined;
  #sendingNews: Promise<void> | undefined;
  /** On its way to the carrier. */
  readonly #underWay = new Set<News>();

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  work(queue: string, count: number): void {
    this.#work.set(queue, (this.#work.get(queue) ?? 0) + count);
    this.#sendingWork ??= this.#sendAllWork();
  }

  /** Everybody who waits in the queue. */
  stir(queue: string): void {
    this.#stirred.add(queue);
    this.#sendNewsSoon();
  }

  ended(queue: string, ids: readonly string[] | undefined): void {
    const before = this.#ended.has(queue) ? this.#ended.get(queue) : new Set<string>();
    const known = ids === undefined ? undefined : before;
    for (const id of ids ?? []) known?.add(id);
    this.#ended.set(queue, known !== undefined && known.size <= MOST_IDS ? known : undefined);
    this.#sendNewsSoon();
  }

  lost(lease: Entry): void {
    if (this.#lost.length < MOST_LOST) this.#lost.push(lease);
    this.#sendNewsSoon();
  }

  /** Resolves when everything was sent, or has failed. */
  async flush(): Promise<void> {
    while (this.#sendingWork !== undefined || this.#sendingNews !== undefined)
      await Promise.all([this.#sendingWork, this.#sendingNews]);
  }

  /** Nobody waits for the carrier any longer: what it has not taken is told to those who may have another way. */
  giveUp(): void {
    const work = [...this.#work].map(([queue, count]): Entry => [queue, count, 0]);
    this.#work = new Map();
    for (const news of [...this.#underWay, this.#takeNews(), { work, ended: [], lost: [] }]) this.#tellUntold(news);
    this.#underWay.clear();
  }

  get #hasNews(): boolean {
    return this.#stirred.size + this.#ended.size + this.#lost.length > 0;
  }

  #sendNewsSoon(): void {
    this.#sendingNews ??= this.#sendAllNews();
  }

  async #sendAllNews(): Promise<void> {
    try {
      await restOfTurn();
      while (this.#hasNews) await this.#publish(this.#takeNews());
    } finally {
      // In the same step as the last look, so that nothing comes between and is left.
      this.#sendingNews = undefined;
    }
  }

  async #sendAllWork(): Promise<void> {
    try {
      await restOfTurn();
      while (this.#work.size > 0) {
        const work = this.#work;
        this.#work = new Map();
        await this.#sendWork(work);
      }
    } finally {
      this.#sendingWork = undefined;
    }
  }

  #takeNews(): News {
    const ended = [...this.#ended].flatMap(([queue, ids]): Entry[] =>
      ids === undefined ? [[queue]] : [...ids].map((id) => [queue, id]),
    );
    const lost = this.#lost;
    const stirred = [...this.#stirred].map((queue): Entry => [queue]);
    this.#stirred.clear();
    this.#ended = new Map();
    this.#lost = [];
    return { work: stirred, ended, lost };
  }

  /** The budget first: whoever hears of the work looks there. */
  async #sendWork(work: ReadonlyMap<string, number>): Promise<void> {
    const { hints, budgetOf } = this.#parts;
    const asked: News = { work: [...work].map(([queue, count]) => [queue, count, 0]), ended: [], lost: [] };
    this.#underWay.add(asked);
    const entries = [...work].map(async ([queue, count]): Promise<Entry> => {
      const isBudgeted = await hints.add(budgetOf(queue), count);
      return [queue, count, isBudgeted ? 1 : 0];
    });
    const news = { work: await Promise.all(entries), ended: [], lost: [] };
    if (this.#underWay.delete(asked)) await this.#publish(news);
  }

  async #publish(news: News): Promise<void> {
    const { adapter, clock, sender, channelOf, sent, trouble } = this.#parts;
    const messages = SIGNALS.flatMap((signal): readonly WakeMessage[] =>
      writeTexts(sender, news[signal]).map((text) => ({ channel: channelOf(signal), text })),
    );
    if (messages.length === 0) return;
    this.#underWay.add(news);
    const isSent = (await within(clock, SEND_MS, adapter.publish(messages), trouble)) !== undefined;
    const isWanted = this.#underWay.delete(news);
    if (isSent) sent();
    else if (isWanted) this.#tellUntold(news);
  }

  #tellUntold(news: News): void {
    for (const signal of SIGNALS) if (news[signal].length > 0) this.#parts.untold(signal, news[signal]);
  }
}

/** Which may have more to tell. */
function restOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
