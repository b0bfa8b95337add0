/** Whether this process goes on with a key that it settles, and with how many it is about to. */
import type { Clock } from "../../domain/clock.ts";
import { PassingSet } from "../../domain/passing.ts";
import type { LeaseEnding } from "./endings.ts";
import type { KeyStore } from "./key-store.ts";
import type { Held } from "./own-leases.ts";

export interface GoingOnHooks {
  /** Whether this process would go on with a key that it settles, which may have a slot already. */
  readonly goesOn: (level: number, hasSlot: boolean) => boolean;
  /** A settlement that might have brought a grant is over. */
  readonly stir: () => void;
}

export class GoingOn {
  readonly #clock: Clock;
  readonly #levels: number;
  readonly #hooks: GoingOnHooks;
  /** Settlements on their way that have a slot for their keys' next items. */
  readonly #held = new PassingSet<Held>();
  #closed = false;

  constructor({ clock, levels }: KeyStore, hooks: GoingOnHooks) {
    this.#clock = clock;
    this.#levels = levels;
    this.#hooks = hooks;
  }

  /** No key goes on any more. */
  close(): void {
    this.#closed = true;
  }

  get count(): number {
    return this.#held.size;
  }

  /** The most urgent level of the items that are about to come so. */
  get level(): number {
    let level = this.#levels;
    for (const { streak } of this.#held) {
      const { items } = streak.seen.state;
      level = Math.min(level, (items[1] ?? items[0])?.level ?? level);
    }
    return level;
  }

  may(held: Held, { type }: LeaseEnding): boolean {
    return (
      !this.#closed &&
      // A worker that asks for runs goes on within them, and claims the next.
      held.mostItems === 1 &&
      // One that is tried again, or given back, goes behind the keys that are ready.
      type !== "retry" &&
      type !== "release" &&
      type !== "unused" &&
      this.#hooks.goesOn(held.item?.level ?? 0, this.#held.has(held)) &&
      held.streak.lasts(this.#clock.monotonic()) &&
      !held.session.dead
    );
  }

  add(held: Held): void {
    this.#held.add(held);
  }

  /** It has gone on. */
  delete(held: Held): void {
    this.#held.delete(held);
  }

  /** If it had a slot, that is for others. */
  leave(held: Held): void {
    if (this.#held.delete(held)) this.#hooks.stir();
  }
}
