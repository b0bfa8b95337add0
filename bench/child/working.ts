/** Runs the handler of the workloads, and watches what a queue promises: nothing twice, one per key, in order. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Item } from "../item.ts";
import type { Client, WorkOptions } from "../subject.ts";
import { median } from "../report/statistics.ts";
import { BoxedClock, type WarmUp } from "./boxed-clock.ts";

export interface WorkTask extends WorkOptions {
  /** Done when so many items were handled… */
  readonly count: number;
  /** …or when so much time has passed since the first began. */
  readonly boxMs: number;
  /** Until so many were handled, or so much time has passed, nothing is counted. */
  readonly warmUp?: WarmUp;
  /** Exclusive per key and in order: then it is checked. */
  readonly exclusive: boolean;
  /** How long the handler of an item takes. Default: it returns at once, or after one turn of the event loop where exclusivity is checked. */
  readonly handlerMs?: number;
  /** Items of this key take their own time and are not counted. */
  readonly hotKey?: { readonly key: string; readonly handlerMs: number };
}

export interface WorkResult {
  /** In the time that was measured. */
  readonly handled: number;
  readonly ms: number;
  /** In all, the warm-up included: of these are the following. */
  readonly seen: number;
  /** Handled more than once. */
  readonly duplicates: number;
  /** Began while another of its key ran. */
  readonly overlaps: number;
  /** Began right after one that was submitted later for its key. */
  readonly outOfOrder: number;
  /** From the end of an item to the start of the key's next; undefined if no key had two. */
  readonly gapMs: number | undefined;
}

export async function work(client: Client, task: WorkTask): Promise<WorkResult> {
  const { count, boxMs, exclusive, handlerMs, hotKey } = task;
  const watch = new Watch();
  const clock = new BoxedClock(count, boxMs, task.warmUp);

  const plain = (item: Item): void => {
    clock.starts();
    watch.sees(item);
    clock.ends();
  };
  const watched = async (item: Item): Promise<void> => {
    clock.starts();
    watch.starts(item);
    const hot = hotKey?.key === item.key;
    const takesMs = hot ? hotKey.handlerMs : handlerMs;
    // Without any pause another item of the key could not begin meanwhile, and nothing would be checked.
    await (takesMs === undefined ? new Promise(setImmediate) : sleep(takesMs));
    watch.ends(item);
    if (!hot) clock.ends();
  };

  const stop = await client.work(task, exclusive || handlerMs !== undefined ? watched : plain);
  try {
    const { handled, ms } = await clock.result;
    return { handled, ms, ...watch.report() };
  } finally {
    clock.cancel();
    await stop();
  }
}

/** What was seen of every key. */
class Watch {
  readonly #seen = new Set<number>();
  readonly #running = new Set<string>();
  readonly #places = new Map<string, number>();
  readonly #ended = new Map<string, number>();
  readonly #gaps: number[] = [];
  #duplicates = 0;
  #overlaps = 0;
  #outOfOrder = 0;

  sees(item: Item): void {
    if (this.#seen.has(item.number)) this.#duplicates += 1;
    this.#seen.add(item.number);
  }

  starts(item: Item): void {
    this.sees(item);
    const { key, place } = item;
    if (this.#running.has(key)) this.#overlaps += 1;
    this.#running.add(key);
    if (place < (this.#places.get(key) ?? 0)) this.#outOfOrder += 1;
    this.#places.set(key, place);
    const ended = this.#ended.get(key);
    if (ended !== undefined) this.#gaps.push(performance.now() - ended);
  }

  ends({ key }: Item): void {
    this.#running.delete(key);
    this.#ended.set(key, performance.now());
  }

  report(): Pick<WorkResult, "seen" | "duplicates" | "overlaps" | "outOfOrder" | "gapMs"> {
    return {
      seen: this.#seen.size,
      duplicates: this.#duplicates,
      overlaps: this.#overlaps,
      outOfOrder: this.#outOfOrder,
      gapMs: this.#gaps.length === 0 ? undefined : median(this.#gaps),
    };
  }
}
