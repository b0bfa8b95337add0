/**
 * A cloud queue in its simplest form: it hides what it hands out, shows it again when nobody says more, counts
 * receipts, and may keep groups in order. Its requests fail as a test says.
 */
import { MessageLost } from "../../../src/relay/sources/polling/hold.ts";

export interface Stored {
  readonly id: string;
  readonly key: string | undefined;
  readonly sentAt: number;
  readonly order: number;
  receives: number;
  visibleAt: number;
  /** Of the last receipt. */
  receipt: number;
  end: "removed" | "dead" | undefined;
}

export interface Receipt {
  readonly stored: Stored;
  readonly number: number;
}

/** A request of each kind can fail. `receive` is also a long poll that is under way. */
export type Operation = "receive" | "hide" | "remove" | "copy";
/**
 * `refused`: nothing was done. `unanswered`: it was done, and nobody is told. `slow`: it is answered late. `hangs`: it
 * is refused after a long time.
 */
export type Fault = "refused" | "unanswered" | "slow" | "hangs";

export interface ModelQueueOptions {
  readonly name: string;
  /** Messages of one group are handed out in order; several of them may come in one answer, as with SQS. */
  readonly isFifo: boolean;
  readonly firstHoldMs: number;
  /** The longest that a request takes. */
  readonly latencyMs: number;
  readonly random: () => number;
}

const SLOW_MS = 1_700;
const HANG_MS = 4_000;
const DEAD = new Error("The queue is out of reach.");

export class ModelQueue {
  readonly options: ModelQueueOptions;
  readonly stored: Stored[] = [];
  readonly deadLetters: Map<string, number> = new Map();
  readonly #faults = new Map<Operation, { fault: Fault; left: number; until: number }>();
  readonly #purged = new Set<Stored>();
  readonly #listeners = new Set<() => void>();
  readonly #breakers = new Set<() => void>();

  constructor(options: ModelQueueOptions) {
    this.options = options;
  }

  /** @param known hears of it before anybody can receive it */
  put(id: string, key: string | undefined, known: (stored: Stored) => void): void {
    const now = Date.now();
    const order = this.stored.length;
    const stored: Stored = { id, key, sentAt: now, order, receives: 0, visibleAt: now, receipt: 0, end: undefined };
    this.stored.push(stored);
    known(stored);
    this.#changed();
  }

  get open(): readonly Stored[] {
    return this.stored.filter(({ end }) => end === undefined);
  }

  /** The next requests of the kind fail, so many of them, or for so long. */
  fail(operation: Operation, fault: Fault, times: number, ms: number = Infinity): void {
    this.#faults.set(operation, { fault, left: times, until: Date.now() + ms });
    if (operation === "receive" && fault === "refused") this.breakPolls(times);
  }

  /** Long polls that are under way are refused. */
  breakPolls(most: number = Infinity): void {
    for (const breakOff of [...this.#breakers].slice(0, most)) breakOff();
  }

  /** What is in it now is not handed out any more. */
  purge(): void {
    for (const stored of this.open) this.#purged.add(stored);
  }

  heal(): void {
    this.#faults.clear();
  }

  /** Something is there that would be handed out. */
  get hasVisible(): boolean {
    return this.#visible().length > 0;
  }

  async receive(most: number, waitMs: number, signal: AbortSignal): Promise<readonly Receipt[]> {
    return await this.#attempt("receive", async () => {
      if (waitMs > 0 && !this.hasVisible && !signal.aborted) await this.#arrival(waitMs, signal);
      return this.#visible()
        .slice(0, most)
        .map((stored) => {
          stored.receives += 1;
          stored.receipt += 1;
          stored.visibleAt = Date.now() + this.options.firstHoldMs;
          this.#wakeAt(stored);
          return { stored, number: stored.receipt };
        });
    });
  }

  async hide(receipt: Receipt, ms: number): Promise<void> {
    await this.#attempt("hide", () => {
      this.#mustHold(receipt);
      const { stored } = receipt;
      stored.visibleAt = Date.now() + ms;
      if (ms === 0) this.#changed();
      else this.#wakeAt(stored);
    });
  }

  async remove(receipt: Receipt, how: "removed" | "dead" = "removed"): Promise<void> {
    await this.#attempt("remove", () => {
      // Whoever repeats it because the answer was lost has nothing left to change.
      if (receipt.stored.end === how && receipt.number === receipt.stored.receipt) return;
      this.#mustHold(receipt);
      receipt.stored.end = how;
      this.#changed();
    });
  }

  async copyToDeadLetters(id: string): Promise<void> {
    await this.#attempt("copy", () => void this.deadLetters.set(id, (this.deadLetters.get(id) ?? 0) + 1));
  }

  #mustHold({ stored, number }: Receipt): void {
    if (stored.end !== undefined || stored.receipt !== number || stored.visibleAt <= Date.now())
      throw new MessageLost(this.options.name, stored.id, "the queue has shown it again");
  }

  /**
   * In the order of arrival, of a group only what is before everything of it that is hidden. Without groups, what came
   * back is last: it does not keep what waits behind it for ever.
   */
  #visible(): readonly Stored[] {
    const now = Date.now();
    const blocked = new Set<string>();
    const inOrder = this.options.isFifo
      ? this.open
      : this.open.toSorted((one, other) => one.visibleAt - other.visibleAt);
    return inOrder.filter((one) => {
      const isBlocked = this.options.isFifo && one.key !== undefined && blocked.has(one.key);
      if (one.visibleAt > now && one.key !== undefined) blocked.add(one.key);
      return one.visibleAt <= now && !isBlocked && !this.#purged.has(one);
    });
  }

  async #attempt<T>(operation: Operation, work: () => T | Promise<T>): Promise<T> {
    const { latencyMs, random } = this.options;
    if (latencyMs > 0) await pass((latencyMs / 2) * random());
    const answer = await this.#answer(operation, work);
    if (latencyMs > 0) await pass((latencyMs / 2) * random());
    return answer;
  }

  async #answer<T>(operation: Operation, work: () => T | Promise<T>): Promise<T> {
    const fault = this.#faultOf(operation);
    switch (fault) {
      case undefined:
        return await work();
      case "refused":
        throw DEAD;
      case "hangs":
        await pass(HANG_MS);
        throw DEAD;
      case "slow":
        await pass(SLOW_MS * (0.5 + this.options.random()));
        return await work();
      case "unanswered":
        await work();
        throw DEAD;
    }
  }

  #faultOf(operation: Operation): Fault | undefined {
    const found = this.#faults.get(operation);
    if (found === undefined) return undefined;
    if (found.left <= 0 || found.until <= Date.now()) {
      this.#faults.delete(operation);
      return undefined;
    }
    found.left -= 1;
    return found.fault;
  }

  #arrival(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        clearTimeout(timer);
        this.#listeners.delete(look);
        this.#breakers.delete(breakOff);
        signal.removeEventListener("abort", end);
      };
      const end = (): void => {
        over();
        resolve();
      };
      const look = (): void => {
        if (this.hasVisible) end();
      };
      const breakOff = (): void => {
        over();
        reject(DEAD);
      };
      const timer = setTimeout(end, waitMs);
      this.#listeners.add(look);
      this.#breakers.add(breakOff);
      signal.addEventListener("abort", end, { once: true });
    });
  }

  #wakeAt({ visibleAt }: Stored): void {
    setTimeout(() => this.#changed(), visibleAt - Date.now());
  }

  #changed(): void {
    for (const look of this.#listeners) look();
  }
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
