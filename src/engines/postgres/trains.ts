import type { ClaimRequest, Grant, Lease, SettleResult } from "../../engine/port.ts";
import type { Report, Train } from "./train.ts";

/** So many results are kept for calls that failed and have not come again: nearly all do, at once. */
const MOST_UNHEARD = 10_000;

/** The trains of one queue. */
export class Trains {
  readonly #trains = new Map<number, Train>();
  /** Their next items may begin, in the order in which the ones before were done. */
  #offering: Train[] = [];
  /** Of those that nobody heard of, because the call that asked had failed. By fence. */
  readonly #unheard = new Map<number, SettleResult>();

  begin(train: Train): void {
    this.#trains.set(train.key, train);
  }

  /** The train whose item this is, begun and not certain to be settled. */
  of({ handle, fence }: Lease): Train | undefined {
    const train = this.#trains.size === 0 ? undefined : this.#trains.get(Number(handle));
    return train?.has(fence) === true ? train : undefined;
  }

  all(): readonly Train[] {
    return [...this.#trains.values()];
  }

  /** Of a key. */
  get(key: number): Train | undefined {
    return this.#trains.get(key);
  }

  /** Of an item that was settled by a train after the call that asked for it had failed. */
  hear({ fence }: Lease): SettleResult | undefined {
    if (this.#unheard.size === 0) return undefined;
    const result = this.#unheard.get(fence);
    this.#unheard.delete(fence);
    return result;
  }

  offer(train: Train): void {
    this.#offering.push(train);
  }

  /** What a worker that asked can begin at once. */
  take({ worker, leaseMs }: ClaimRequest, max: number, now: number): Grant[] {
    const taken: Grant[] = [];
    if (this.#offering.length === 0) return taken;
    this.#offering = this.#offering.filter((train) => {
      const grant = train.offered(now);
      if (grant === undefined) return false;
      if (taken.length >= max || train.worker !== worker || train.leaseMs !== leaseMs) return true;
      train.take();
      taken.push(grant);
      return false;
    });
    return taken;
  }

  /** The store knows what it was told. */
  reported(report: Report, result: SettleResult): void {
    const { train } = report;
    const unheard = train.reported(report, result);
    if (train.isOver) this.#remove(train);
    for (const fence of unheard) this.#keep(fence, report.last?.lease.fence === fence ? result : "settled");
  }

  /** Its key is somebody else's. Returns what should not run any more. */
  lost(train: Train): Lease | undefined {
    this.#remove(train);
    return train.lost();
  }

  /** Nothing more of any of them begins. */
  stop(): void {
    for (const train of this.#trains.values()) train.stop();
    this.#offering = [];
  }

  #remove(train: Train): void {
    if (this.#trains.get(train.key) === train) this.#trains.delete(train.key);
  }

  #keep(fence: number, result: SettleResult): void {
    if (this.#unheard.size >= MOST_UNHEARD) this.#unheard.clear();
    this.#unheard.set(fence, result);
  }
}
