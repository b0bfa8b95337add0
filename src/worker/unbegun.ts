import type { Engine, Item } from "../engine/port.ts";

/** More items than this at a time were lost by nobody who goes on working. The oldest is forgotten first. */
const MOST = 10_000;

/**
 * Attempts that a store has counted and that no handler of this process has seen: the lease ran out while something blocked the event loop, before the
 * item's turn came. The item's number of attempts is not used up by them here.
 */
export class Unbegun {
  readonly #attempts = new Map<string, Set<number>>();

  note(item: Item): void {
    const name = nameOf(item);
    const attempts = this.#attempts.get(name) ?? new Set();
    this.#attempts.delete(name);
    this.#attempts.set(name, attempts.add(item.attempt));
    for (const oldest of this.#attempts.keys()) {
      if (this.#attempts.size <= MOST) break;
      this.#attempts.delete(oldest);
    }
  }

  /** This one is seen, also where an earlier lease had the same number and was given back after all. */
  began(item: Item): void {
    if (this.#attempts.size > 0) this.#attempts.get(nameOf(item))?.delete(item.attempt);
  }

  /** How many of the attempts before this one no handler saw. */
  before(item: Item): number {
    if (this.#attempts.size === 0) return 0;
    let count = 0;
    for (const attempt of this.#attempts.get(nameOf(item)) ?? []) if (attempt < item.attempt) count += 1;
    return count;
  }

  ended(item: Item): void {
    if (this.#attempts.size > 0) this.#attempts.delete(nameOf(item));
  }
}

/** Names of queues have no such character. */
function nameOf({ queue, id }: Item): string {
  return `${queue}\n${id}`;
}

const ofConnection = new WeakMap<Engine, Unbegun>();

/** All workers of a connection share one. */
export function unbegunOf(engine: Engine): Unbegun {
  let unbegun = ofConnection.get(engine);
  if (unbegun === undefined) ofConnection.set(engine, (unbegun = new Unbegun()));
  return unbegun;
}
