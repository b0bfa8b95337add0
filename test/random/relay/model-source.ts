/** The two shapes of a source, on a queue of the model: one that polls, as those for clouds do, and one that is told. */
import type { GiveBackRequest, ReceiveRequest, Source, SourceMessage } from "../../../src/relay/index.ts";
import { Batch } from "../../../src/relay/sources/polling/batch.ts";
import { HeldMessage } from "../../../src/relay/sources/polling/held-message.ts";
import { PollLine } from "../../../src/relay/sources/polling/poll-line.ts";
import { SignsOfLife } from "../../../src/relay/sources/polling/signs-of-life.ts";
import { Untried } from "../../../src/relay/sources/polling/untried.ts";
import type { ModelQueue, Receipt } from "./model-queue.ts";

export interface ModelSourceOptions {
  readonly kind: "polls" | "told";
  readonly holdMs: number;
  readonly hasDeadLetters: boolean;
  /** Only where it is told: what it counts. */
  readonly counts: "receipts" | "deliveries" | "nothing";
  readonly random: () => number;
}

/** What a source was asked, so that a test sees how often, and that it is left alone after it was closed. */
export interface Heard {
  isClosed: boolean;
  afterClose: number;
  /** Receives that waited at one time, and had not been called off. */
  mostWatches: number;
  /** Messages whose end it is being told. */
  underWay: number;
}

const POLL_MS = 20_000;

export function openModelSource(queue: ModelQueue, options: ModelSourceOptions): Source & Heard {
  return options.kind === "polls" ? new PollingSource(queue, options) : new ToldSource(queue, options);
}

class PollingSource implements Source {
  readonly name: string;
  readonly #queue: ModelQueue;
  readonly #options: ModelSourceOptions;
  readonly #line: PollLine;
  readonly #untried = new Untried();
  readonly #removals: Batch<Receipt>;
  isClosed = false;
  afterClose = 0;
  mostWatches = 0;
  underWay = 0;

  constructor(queue: ModelQueue, options: ModelSourceOptions) {
    this.name = queue.options.name;
    this.#queue = queue;
    this.#options = options;
    this.#line = new PollLine({
      name: this.name,
      most: 10,
      polls: 4,
      waitMs: POLL_MS,
      isOneByOne: () => queue.options.isFifo,
      fetch: async ({ most, wait, signal }) => {
        using life = new SignsOfLife();
        const receipts = await queue.receive(most, wait ? POLL_MS : 0, signal);
        const since = life.answeredSince();
        return receipts.map((receipt) => this.#messageOf(receipt, since));
      },
      random: options.random,
    });
    this.#removals = new Batch<Receipt>({
      most: 2,
      requests: 1,
      send: async (receipts) => {
        const done = await Promise.allSettled(receipts.map((receipt) => queue.remove(receipt)));
        return done.map((one) => (one.status === "fulfilled" ? undefined : asError(one.reason)));
      },
    });
  }

  async receive({ max, signal }: ReceiveRequest): Promise<readonly SourceMessage[]> {
    if (this.isClosed) this.afterClose += 1;
    return await this.#line.receive(max, signal);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.#line.close();
  }

  #messageOf(receipt: Receipt, since: { readonly wall: number; readonly monotonic: number }): SourceMessage {
    const { stored } = receipt;
    const { firstHoldMs } = this.#queue.options;
    return new WatchedMessage(this, {
      source: this.name,
      id: stored.id,
      data: bodyOf(stored.id, stored.key),
      attributes: {},
      key: stored.key,
      attempt: stored.receives,
      untried: this.#untried,
      sentAt: stored.sentAt,
      since,
      firstHoldMs,
      holdMs: this.#options.holdMs,
      queue: {
        longestHoldMs: 43_200_000,
        longestDelayMs: 43_200_000,
        hide: (ms) => this.#queue.hide(receipt, ms),
        remove: () => this.#removals.add(receipt),
        copyToDeadLetters: this.#options.hasDeadLetters ? () => this.#queue.copyToDeadLetters(stored.id) : undefined,
      },
    });
  }
}

class WatchedMessage extends HeldMessage {
  readonly #heard: Heard;

  constructor(heard: Heard, parts: ConstructorParameters<typeof HeldMessage>[0]) {
    super(parts);
    this.#heard = heard;
  }

  override async acknowledge(): Promise<void> {
    await during(this.#heard, () => super.acknowledge());
  }

  override async giveBack(request: GiveBackRequest): Promise<void> {
    await during(this.#heard, () => super.giveBack(request));
  }
}

class ToldSource implements Source {
  readonly name: string;
  readonly counts: "receipts" | "deliveries";
  readonly #watches = new Set<AbortSignal>();
  readonly #queue: ModelQueue;
  readonly #options: ModelSourceOptions;
  isClosed = false;
  afterClose = 0;
  mostWatches = 0;
  underWay = 0;

  constructor(queue: ModelQueue, options: ModelSourceOptions) {
    this.name = queue.options.name;
    this.counts = options.counts === "deliveries" ? "deliveries" : "receipts";
    this.#queue = queue;
    this.#options = options;
  }

  async receive({ max, signal }: ReceiveRequest): Promise<readonly SourceMessage[]> {
    if (this.isClosed) this.afterClose += 1;
    const isTry = signal.aborted;
    if (!isTry) this.#watches.add(signal);
    this.mostWatches = Math.max(this.mostWatches, [...this.#watches].filter(({ aborted }) => !aborted).length);
    try {
      return await this.#receive(max, signal, isTry);
    } finally {
      this.#watches.delete(signal);
    }
  }

  async #receive(max: number, signal: AbortSignal, isTry: boolean): Promise<readonly SourceMessage[]> {
    for (;;) {
      // One by one where the queue keeps groups in order: it holds back the others of the group.
      const most = this.#queue.options.isFifo ? 1 : max;
      const receipts = await this.#queue.receive(most, isTry ? 0 : POLL_MS, signal);
      if (receipts.length > 0 || signal.aborted)
        return receipts.map((receipt) => new ToldMessage(this, this.#queue, receipt, this.#options));
    }
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

class ToldMessage implements SourceMessage {
  readonly id: string;
  readonly data: Uint8Array;
  readonly contentType = "application/json";
  readonly attributes: Readonly<Record<string, string>> = {};
  readonly key: string | undefined;
  readonly attempt: number | undefined;
  readonly sentAt: number;
  readonly fence = undefined;
  readonly holdMs: number;
  readonly lost: AbortSignal = new AbortController().signal;
  readonly bury: ((reason: string) => Promise<void>) | undefined;
  readonly #heard: Heard;
  readonly #queue: ModelQueue;
  readonly #receipt: Receipt;
  readonly #options: ModelSourceOptions;

  constructor(heard: Heard, queue: ModelQueue, receipt: Receipt, options: ModelSourceOptions) {
    const { stored } = receipt;
    this.#heard = heard;
    this.#queue = queue;
    this.#receipt = receipt;
    this.#options = options;
    this.id = stored.id;
    this.key = stored.key;
    this.data = bodyOf(stored.id, stored.key);
    this.sentAt = stored.sentAt;
    this.attempt = options.counts === "nothing" ? undefined : stored.receives;
    this.holdMs = queue.options.firstHoldMs;
    this.bury = options.hasDeadLetters
      ? async () => {
          await queue.copyToDeadLetters(stored.id);
          await queue.remove(receipt, "dead");
        }
      : undefined;
  }

  async extend(): Promise<void> {
    await this.#queue.hide(this.#receipt, this.holdMs);
  }

  async acknowledge(): Promise<void> {
    await during(this.#heard, () => this.#queue.remove(this.#receipt));
  }

  async giveBack({ delayMs, countAttempt }: GiveBackRequest): Promise<void> {
    await during(this.#heard, () => this.#queue.hide(this.#receipt, delayMs));
    if (!countAttempt && this.#options.counts === "deliveries") this.#receipt.stored.receives -= 1;
  }
}

async function during(heard: Heard, work: () => Promise<void>): Promise<void> {
  heard.underWay += 1;
  try {
    await work();
  } finally {
    heard.underWay -= 1;
  }
}

function bodyOf(id: string, key: string | undefined): Uint8Array {
  return Buffer.from(JSON.stringify({ id, key }));
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
