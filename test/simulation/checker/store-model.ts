/**
 * What any correct store must be in after the happenings so far: a plain sequential account, written from the
 * port's contract. It knows nothing about how an engine does it, and is slow and simple on purpose.
 *
 *   item:  delayed ─▶ waiting ─▶ running ─▶ done · dead · cancelled        waiting or delayed ─▶ replaced · cancelled
 *                        ▲          ├─ retry, keep ─▶ backing off (blocks its key) ─▶ running
 *                        └──────────┤─ retry, yield ─▶ delayed
 *                                   └─ release, lease over ─▶ waiting, in its old place
 */
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
  readonly item: ModelItem | undefined;
  deadline: number;
}

export interface ModelKey {
  readonly name: string;
  readonly items: Set<ModelItem>;
  lease: ModelLease | undefined;
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
      key = { name, items: new Set(), lease: undefined, paused: false, highestFence: 0, grantedAt: undefined };
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
    key.lease = undefined;
    if (lease.item === undefined) return;
    if (lease.item.cancelRequested) this.end(lease.item, "cancelled");
    else lease.item.state = "waiting";
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
