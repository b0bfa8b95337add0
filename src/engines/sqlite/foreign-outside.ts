import { HeldLeases } from "../../engine/held-leases.ts";
import type { Finding } from "../../engine/port.ts";
import type { Sleepers } from "../../wake/slots.ts";
import type { Wake } from "../../wake/wake.ts";
import type { News } from "./messages.ts";
import type { Outside } from "./outside.ts";
import type { ThreadLink } from "./thread-link.ts";

/** Those of one queue who sleep. One look of the store's thread serves them all. */
class Dormitory implements Sleepers {
  claims = 0;
  holds = 0;
  readonly leave: () => void;
  readonly #link: ThreadLink;

  constructor(wake: Wake, queue: string, link: ThreadLink) {
    this.#link = link;
    this.leave = wake.onWork(queue, this);
  }

  idle(): number {
    return this.claims;
  }

  wake(): void {
    this.#link.tell("look");
  }

  stir(): void {
    this.#link.tell("look");
  }
}

interface Awaited {
  readonly ids: Map<string, number>;
  readonly leave: () => void;
}

/** A carrier of the application's choice in place of the files: it tells which queue has work, which items ended and which leases are lost. */
export class ForeignOutside implements Outside {
  readonly held: HeldLeases;
  readonly #wake: Wake;
  readonly #link: ThreadLink;
  readonly #asleep = new Map<string, Dormitory>();
  readonly #awaited = new Map<string, Awaited>();

  constructor(link: ThreadLink, wake: Wake) {
    this.#link = link;
    this.#wake = wake;
    let leave: (() => void) | undefined;
    this.held = new HeldLeases((some) => {
      if (some) leave = wake.onLost((lost) => this.held.doubt(lost));
      else leave?.();
    });
    link.onNews = (news) => this.#tell(news);
    let heard = false;
    wake.onHearing(() => {
      if (wake.hears === heard) return;
      heard = wake.hears;
      link.tell(heard ? "hears" : "deaf");
    });
  }

  async asleep<T>(queue: string, isClaim: boolean, wait: () => Promise<T>): Promise<T> {
    const kind = isClaim ? "claims" : "holds";
    let room = this.#asleep.get(queue);
    if (room === undefined) this.#asleep.set(queue, (room = new Dormitory(this.#wake, queue, this.#link)));
    room[kind] += 1;
    try {
      return await wait();
    } finally {
      room[kind] -= 1;
      if (room.claims + room.holds === 0) {
        room.leave();
        this.#asleep.delete(queue);
      }
    }
  }

  async awaiting<T>(queue: string, id: string, wait: () => Promise<T>): Promise<T> {
    const { ids, leave } = this.#awaited.get(queue) ?? this.#await(queue);
    ids.set(id, (ids.get(id) ?? 0) + 1);
    try {
      return await wait();
    } finally {
      const left = (ids.get(id) ?? 1) - 1;
      if (left > 0) ids.set(id, left);
      else ids.delete(id);
      if (ids.size === 0) {
        leave();
        this.#awaited.delete(queue);
      }
    }
  }

  async check(): Promise<readonly Finding[]> {
    return [await this.#wake.check()];
  }

  async close(): Promise<void> {
    await this.#wake.close();
  }

  #await(queue: string): Awaited {
    const ids = new Map<string, number>();
    const leave = this.#wake.onEnded(queue, (ended) => {
      if (ended === undefined || ended.some((id) => ids.has(id))) this.#link.tell("look");
    });
    const awaited = { ids, leave };
    this.#awaited.set(queue, awaited);
    return awaited;
  }

  #tell({ work, stirred, ended, lost }: News): void {
    for (const [queue, count] of work) this.#wake.work(queue, count);
    for (const queue of stirred) this.#wake.stir(queue);
    for (const [queue, ids] of ended) this.#wake.ended(queue, ids);
    for (const lease of lost) this.#wake.lost(lease);
  }
}
