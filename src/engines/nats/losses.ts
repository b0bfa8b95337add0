import { HeldLeases } from "../../engine/held-leases.ts";
import type { Lease, LostListener } from "../../engine/port.ts";
import { textOf } from "./key-token.ts";
import { FENCES_PER_MESSAGE, type Seen } from "./state.ts";
import type { Subscription, Wire } from "./wire.ts";

/**
 * Who lost a lease is told by whoever frees the key, with a message outside of every stream: the key, and the first fence that its former holder
 * cannot have. It is a hint, and changes nothing here: the holder's own clock and its next renewal say the same.
 */
export class Losses {
  readonly #held = new HeldLeases();
  readonly #wire: Wire;
  readonly #queue: string;
  readonly #subject: string;
  #hearing: Subscription | undefined;

  constructor(wire: Wire, queue: string, subject: string) {
    this.#wire = wire;
    this.#queue = queue;
    this.#subject = subject;
  }

  add(lease: Lease, lost: LostListener | undefined): void {
    if (lost === undefined) return;
    // From the first lease on, and then for good: they come and go by the thousand.
    this.#hearing ??= this.#wire.subscribe(this.#subject, ({ data }) => this.#hear(new TextDecoder().decode(data)));
    this.#held.add(lease, lost);
  }

  /** Its holder is done with it, whatever comes of that. */
  remove(lease: Lease): void {
    this.#held.remove(lease);
  }

  /** The key of a lease that is over was freed by this write. */
  tell(key: string, { sequence }: Seen): void {
    const fence = sequence * FENCES_PER_MESSAGE;
    this.#held.loseBelow(this.#queue, textOf(key), fence);
    this.#wire.publish(this.#subject, `${fence} ${key}`);
  }

  close(): void {
    this.#hearing?.unsubscribe();
  }

  #hear(text: string): void {
    const [, fence, key] = /^(\d+) (\S+)$/.exec(text) ?? [];
    if (fence !== undefined && key !== undefined) this.#held.loseBelow(this.#queue, textOf(key), Number(fence));
  }
}
