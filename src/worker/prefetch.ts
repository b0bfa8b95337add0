import type { HeldItem } from "./held-item.ts";

/** A key that no slot was free for in this time goes back, so that others can have it. */
export const KEEP_MS = 20;

/** Keys that were claimed before there was a slot for them, first come first begun. */
export class Prefetch {
  readonly #kept: { readonly held: HeldItem; readonly until: number }[] = [];

  get size(): number {
    return this.#kept.length;
  }

  /** When the first of them has been kept for too long. */
  get staleAt(): number {
    return this.#kept[0]?.until ?? Infinity;
  }

  /** They may be kept until then, and not for a shorter time than those that are here. */
  add(heldItems: readonly HeldItem[], until: number): void {
    for (const held of heldItems) this.#kept.push({ held, until });
  }

  /** The next one to begin. */
  take(): HeldItem | undefined {
    return this.#kept.shift()?.held;
  }

  /** Takes out what was kept for too long. */
  takeStale(now: number): HeldItem[] {
    const fresh = this.#kept.findIndex(({ until }) => until > now);
    return this.#kept.splice(0, fresh === -1 ? this.#kept.length : fresh).map(({ held }) => held);
  }

  takeAll(): HeldItem[] {
    return this.#kept.splice(0).map(({ held }) => held);
  }
}
