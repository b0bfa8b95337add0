/**
 * What any correct store must be in after the happenings so far: a plain sequential account, written from the
 * port's contract. It knows nothing about how an engine does it, and is slow and simple on purpose.
 *
 *   item:  delayed ─▶ waiting ─▶ running ─▶ done · dead · cancelled        waiting or delayed ─▶ replaced · cancelled
 *                        ▲          ├─ retry, keep ─▶ backing off (blocks its key) ─▶ running
 *                        └──────────┤─ retry, yield ─▶ delayed
 *                                   └─ release, lease over ─▶ waiting, in its old place
 *
 * A lease covers a run: the item that runs, and items that wait behind it. What it covers is its holder's alone. A report ends
 * the one that runs, and the next of the run runs; what a report or the end of the lease leaves over waits as before.
 */
import type { Ended } from "../history.ts";

export type ItemState = "delayed" | "waiting" | "backing off" | "running" | EndState;
export type EndState = "done" | "dead" | "cancelled" | "replaced";

export interface ModelItem {
  readonly token: number;
  readonly id: string;
  readonly key: ModelKey;
  readonly level: number;
  /** Order of arrival at the store. */
  readonly order: number;
  readonly kept: boolean;
  readonly acceptedAt: number;
  /** Submitted with a delay, so its arrival is later than its submission. */
  readonly delayed: boolean;
  state: ItemState;
  attempts: number;
  /** How many of them ended with a lost lease. */
  losses: number;
  /** It gave up its place once. */
  yielded: boolean;
  cancelRequested: boolean;
  /** By the store's wall clock, and by true time as long as that clock is not stepped. */
  due: { readonly wall: number; readonly at: number } | undefined;
}

export interface ModelLease {
  readonly number: number;
  readonly fence: number;
  readonly process: string;
  /** Undefined for a hold. */
  item: ModelItem | undefined;
  /** The others of its run, in order: covered, not begun. */
  behind: ModelItem[];
  deadline: number;
}

export interface ModelKey {
  readonly name: string;
  readonly items: Set<ModelItem>;
  lease: ModelLease | undefined;
  /** So many items go one by one: a lease that covered as many was lost. */
  alone: number;
  paused: boolean;
  highestFence: number;
  /** When it was handed out last. */
  grantedAt: number | undefined;
}

export class StoreModel {
  readonly keys: Map<string, ModelKey> = new Map();
  readonly items: Map<number, ModelItem> = new Map();
  readonly byId: Map<string, ModelItem> = new Map();
  readonly waitingClaims: Set<number> = new Set();
  paused = false;

  key(name: string): ModelKey {
    let key = this.keys.get(name);
    if (key === undefined) {
      key = {
        name,
        items: new Set(),
        lease: undefined,
        alone: 0,
        paused: false,
        highestFence: 0,
        grantedAt: undefined,
      };
      this.keys.set(name, key);
    }
    return key;
  }

  /** Does not run, has not ended: what limits and modes count. */
  behind(key: ModelKey): ModelItem[] {
    return [...key.items].filter(({ state }) => state !== "running");
  }

  behindInAll(): number {
    let count = 0;
    for (const key of this.keys.values()) count += this.behind(key).length;
    return count;
  }

  accept(item: ModelItem): void {
    item.key.items.add(item);
    this.items.set(item.token, item);
    this.byId.set(item.id, item);
  }

  end(item: ModelItem, state: EndState): void {
    item.state = state;
    item.key.items.delete(item);
    // A store may forget a key that has nothing left.
    if (item.key.items.size === 0) item.key.alone = 0;
  }

  /** The lease that runs out next, if it does so until then. */
  nextExpired(until: number): { readonly key: ModelKey; readonly lease: ModelLease } | undefined {
    let next: { key: ModelKey; lease: ModelLease } | undefined;
    for (const key of this.keys.values()) {
      const { lease } = key;
      if (lease === undefined || lease.deadline > until) continue;
      if (next === undefined || lease.deadline < next.lease.deadline) next = { key, lease };
    }
    return next;
  }

  expire(key: ModelKey, lease: ModelLease): void {
    const covered = lease.behind.length + 1;
    key.lease = undefined;
    this.uncover(lease);
    const { item } = lease;
    if (item === undefined) return;
    key.alone = Math.max(key.alone, covered);
    if (item.cancelRequested) this.end(item, "cancelled");
    else {
      item.state = "waiting";
      item.losses += 1;
    }
  }

  isCovered(item: ModelItem): boolean {
    return item.key.lease?.behind.includes(item) ?? false;
  }

  /** What a report says of a run, item by item. One that is not the next to end was reported before. */
  endBefore(key: ModelKey, lease: ModelLease, ended: readonly Ended[]): void {
    for (const { id, ending } of ended) {
      const [next] = lease.behind;
      if (next === undefined || lease.item?.id !== id) continue;
      this.end(lease.item, ending);
      key.alone = Math.max(0, key.alone - 1);
      lease.behind.shift();
      lease.item = next;
      next.state = "running";
      next.attempts += 1;
    }
  }

  /** Nothing but what runs is covered any more. Whoever asked to cancel the rest was told that it ends with the lease. */
  uncover(lease: ModelLease): void {
    const left = lease.behind;
    lease.behind = [];
    for (const item of left) if (item.cancelRequested) this.end(item, "cancelled");
  }

  /**
   * From when on the key can be handed out, if nothing else happens. Items that wait for the wall clock count only
   * while that clock can be trusted.
   */
  readyAt(key: ModelKey, trustWall: boolean): number | undefined {
    if (this.paused || key.paused || key.lease !== undefined) return undefined;
    let earliest: number | undefined;
    for (const item of key.items) {
      if (item.due !== undefined && !trustWall) continue;
      if (this.isBlocked(item)) continue;
      const at = item.due?.at ?? 0;
      if (earliest === undefined || at < earliest) earliest = at;
    }
    return earliest;
  }

  /** Something at its level or above keeps its place in front of it, and is not due yet. */
  isBlocked(item: ModelItem): boolean {
    for (const other of item.key.items) {
      if (other !== item && other.state === "backing off" && other.level <= item.level) return true;
    }
    return false;
  }
}
