import { HeldLeases } from "../../engine/held-leases.ts";
import type { Lease, LostListener } from "../../engine/port.ts";
import { textOf } from "./key-token.ts";
import { FENCES_PER_MESSAGE, type Seen } from "./state.ts";
import type { QueueSubjects } from "./subjects.ts";
import { sendUnanswered } from "./unanswered.ts";
import type { Subscription, Wire } from "./wire.ts";

/** In place of a key, which is never this. */
const ALL = "*";

/** The queue's stream is gone, or was and has been made anew: whoever has a lease, or a pull that stands, should look. */
export function tellAll(wire: Wire, { lost }: QueueSubjects): void {
  sendUnanswered(wire, lost, `0 ${ALL}`);
}

/**
 * Who lost a lease is told by whoever frees the key, with a message outside of every stream: the key, and the first fence that its former holder
 * cannot have. It is a hint, and changes nothing here: the holder's own clock and its next renewal say the same.
 */
export class Losses {
  readonly #held = new HeldLeases();
  readonly #wire: Wire;
  readonly #queue: string;
  readonly #subject: string;
  readonly #anew: () => void;
  #hearing: Subscription | undefined;

  /** @param anew the queue's stream is another one, or will be in a moment */
  constructor(wire: Wire, queue: string, subject: string, anew: () => void) {
    this.#wire = wire;
    this.#anew = anew;
    this.#queue = queue;
    this.#subject = subject;
  }

  /** From the first claim or lease on, and then for good: they come and go by the thousand. */
  listen(): void {
    this.#hearing ??= this.#wire.subscribe(this.#subject, ({ data }) => this.#hear(new TextDecoder().decode(data)));
  }

  add(lease: Lease, lost: LostListener | undefined): void {
    if (lost === undefined) return;
    this.listen();
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
    sendUnanswered(this.#wire, this.#subject, `${fence} ${key}`);
  }

  /** The queue's stream is gone, or is another one: whoever has a lease asks. */
  doubtAll(): void {
    for (const lease of this.#held.all()) this.#held.doubt(lease);
  }

  close(): void {
    this.#hearing?.unsubscribe();
  }

  #hear(text: string): void {
    const [, fence, key] = /^(\d+) (\S+)$/.exec(text) ?? [];
    if (fence === undefined || key === undefined) return;
    if (key !== ALL) {
      this.#held.loseBelow(this.#queue, textOf(key), Number(fence));
      return;
    }
    this.#anew();
    this.doubtAll();
  }
}
