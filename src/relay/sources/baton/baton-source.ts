import { type Baton, BatonError, Cancelled, connect, type Queue, type TakenItem } from "../../../index.ts";
import { parseDuration } from "../../../domain/duration.ts";
import { checkOptions, type OptionNames } from "../../../domain/options.ts";
import { bodyBytes } from "../../../domain/payload.ts";
import type { GiveBackRequest, ReceiveRequest, Source, SourceMessage } from "../../source.ts";
import { Away } from "./away.ts";

export interface BatonSourceOptions {
  readonly name: string;
  /** Any Baton store by its URL, or a connection, which stays yours to close. */
  readonly store: string | Baton;
  readonly queue: string;
  /** How long a message stays ours if this process is lost. Default 30s. */
  readonly leaseMs?: number | undefined;
}

const SOURCE_OPTIONS: OptionNames<BatonSourceOptions> = { name: true, store: true, queue: true, leaseMs: true };

const DEFAULT_LEASE_MS = parseDuration("30s", "lease");

/** A queue of a Baton store. Its own levels order the messages within it, and its keys are exclusive already. */
export async function batonSource(options: BatonSourceOptions): Promise<Source> {
  const { name, store, queue, leaseMs = DEFAULT_LEASE_MS } = checkOptions(options, SOURCE_OPTIONS);
  const baton = typeof store === "string" ? await connect(store) : store;
  const source = baton.queue(queue, { lease: leaseMs });
  try {
    // A queue that cannot be used is an error now, not a source that waits.
    await source.levels();
  } catch (error) {
    if (typeof store === "string") await baton.close();
    throw error;
  }
  return new BatonSource(name, source, () =>
    typeof store === "string" ? baton.close({ grace: 0 }) : Promise.resolve(),
  );
}

class BatonSource implements Source {
  readonly name: string;
  readonly batonQueue: Queue<unknown>;
  readonly counts = "deliveries";
  readonly #away = new Away();
  readonly #close: () => Promise<void>;

  constructor(name: string, queue: Queue<unknown>, close: () => Promise<void>) {
    this.name = name;
    this.batonQueue = queue;
    this.#close = close;
  }

  async receive({ max, signal }: ReceiveRequest): Promise<readonly SourceMessage[]> {
    try {
      const taken = await this.batonQueue.take({ max, signal });
      return taken.map((one) => new BatonMessage(one, this.#away));
    } catch (error) {
      // A connection that is being closed has nothing more to give.
      if (signal.aborted && error instanceof BatonError && error.code === "CLOSED") return [];
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#away.end();
    await this.#close();
  }
}

class BatonMessage implements SourceMessage {
  readonly #taken: TakenItem<unknown>;
  readonly #away: Away;
  /** The client renews leases by itself. */
  readonly holdMs = 0;

  constructor(taken: TakenItem<unknown>, away: Away) {
    this.#taken = taken;
    this.#away = away;
    const { signal } = taken.lease;
    signal.addEventListener("abort", () => {
      // Nobody wants its work any more. To the relay it is lost; to the store somebody must say that it has ended.
      if (signal.reason instanceof Cancelled) void taken[Symbol.asyncDispose]();
    });
  }

  get id(): string {
    return this.#taken.item.id;
  }

  get data(): Uint8Array {
    return bodyBytes(this.#taken.item.body);
  }

  get contentType(): string {
    return this.#taken.item.type;
  }

  get attributes(): Readonly<Record<string, string>> {
    return this.#taken.item.headers ?? {};
  }

  get key(): string {
    return this.#taken.item.key;
  }

  get attempt(): number {
    return this.#taken.item.attempt;
  }

  get sentAt(): number {
    return this.#taken.item.submittedAt;
  }

  get fence(): number {
    return this.#taken.lease.fence;
  }

  get lost(): AbortSignal {
    const { lease } = this.#taken;
    try {
      // After a standstill the timer may not have had its turn.
      lease.check();
    } catch {
      // The signal has the reason.
    }
    return lease.signal;
  }

  extend(): Promise<void> {
    return Promise.resolve();
  }

  async acknowledge(): Promise<void> {
    await this.#taken.done();
  }

  async giveBack({ delayMs, countAttempt }: GiveBackRequest): Promise<void> {
    if (countAttempt) return await this.#taken.retry("The relay gave the message back.", { after: delayMs });
    if (delayMs === 0) return await this.#taken.release();
    this.#away.keep(this.#taken, delayMs);
  }

  readonly bury = async (reason: string): Promise<void> => {
    await this.#taken.dead(new Error(reason));
  };
}
