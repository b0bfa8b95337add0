import { PassingMap } from "../domain/passing.ts";
import type { Lease, LostListener } from "./port.ts";

interface Held {
  readonly lease: Lease;
  readonly lost: LostListener;
}

/**
 * The leases of one handle whose holders want to hear when their key goes to somebody else, by queue and key: of one key a handle
 * can have one lease that counts. A lease that its holder gave up without a word stays until its key is heard of again.
 */
export class HeldLeases {
  readonly #queues = new Map<string, PassingMap<string, Held>>();
  readonly #onChange: (some: boolean) => void;
  #size = 0;

  /** @param onChange called when there is the first to be told of a loss, and when there is none any more */
  constructor(onChange: (some: boolean) => void = () => undefined) {
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#size;
  }

  add(lease: Lease, lost: LostListener | undefined): void {
    if (lost === undefined) return;
    let keys = this.#queues.get(lease.queue);
    if (keys === undefined) this.#queues.set(lease.queue, (keys = new PassingMap<string, Held>()));
    const before = keys.get(lease.key);
    keys.set(lease.key, { lease, lost });
    if (before === undefined) this.#count(1);
    // The key came back to this handle: whoever had it before does not have it any longer.
    else if (before.lease.fence !== lease.fence) tell(before);
  }

  /** It was settled, or its holder knows that it is lost. */
  remove(lease: Lease): void {
    this.#take(lease);
  }

  /** The store says that it is lost. Nothing happens if it is not one of these. */
  lose(lease: Pick<Lease, "queue" | "key" | "fence">): void {
    const held = this.#take(lease);
    if (held !== undefined) tell(held);
  }

  /**
   * Somebody says so whom anybody can imitate. The holder asks the store; until that has refused it, it can be told again.
   */
  doubt({ queue, key, fence }: Pick<Lease, "queue" | "key" | "fence">): void {
    const held = this.#queues.get(queue)?.get(key);
    if (held?.lease.fence === fence) tell(held);
  }

  /** Where no more than the fence is known, which no other lease of a store has. It is rare, and so it may search. */
  withFence(fence: number): Lease | undefined {
    return this.all().find((lease) => lease.fence === fence);
  }

  /** Every lease of the key with a smaller fence is lost. */
  loseBelow(queue: string, key: string, fence: number): void {
    const held = this.#queues.get(queue)?.get(key);
    if (held !== undefined && held.lease.fence < fence) this.lose(held.lease);
  }

  all(): readonly Lease[] {
    return [...this.#queues.values()].flatMap((keys) => keys.values().map(({ lease }) => lease));
  }

  #take({ queue, key, fence }: Pick<Lease, "queue" | "key" | "fence">): Held | undefined {
    const keys = this.#queues.get(queue);
    const held = keys?.get(key);
    if (keys === undefined || held?.lease.fence !== fence) return undefined;
    keys.delete(key);
    this.#count(-1);
    return held;
  }

  #count(change: 1 | -1): void {
    this.#size += change;
    if (this.#size === 0) this.#onChange(false);
    else if (this.#size === 1 && change === 1) this.#onChange(true);
  }
}

function tell({ lease, lost }: Held): void {
  lost(lease);
}
