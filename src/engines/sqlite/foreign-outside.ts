import { HeldLeases } from "../../engine/held-leases.ts";
import type { Finding } from "../../engine/port.ts";
import type { Wake } from "../../wake/wake.ts";
import type { News } from "./messages.ts";
import type { Outside } from "./outside.ts";
import type { ThreadLink } from "./thread-link.ts";

/** A carrier of the application's choice in place of the files: it tells which queue has work, which items ended and which leases are lost. */
export class ForeignOutside implements Outside {
  readonly held: HeldLeases;
  readonly #wake: Wake;
  readonly #link: ThreadLink;

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

  asleep(queue: string, isClaim: boolean): () => void {
    let idle = isClaim ? 1 : 0;
    const leave = this.#wake.onWork(queue, { idle: () => idle, wake: this.#look, stir: this.#look });
    return () => {
      // A hint that is just being asked for is the last.
      idle = 0;
      leave();
    };
  }

  awaiting(queue: string, id: string): () => void {
    return this.#wake.onEnded(queue, (ids) => {
      if (ids === undefined || ids.includes(id)) this.#look();
    });
  }

  async check(): Promise<readonly Finding[]> {
    return [await this.#wake.check()];
  }

  async close(): Promise<void> {
    await this.#wake.close();
  }

  /** One look of the store's thread serves all who wait. */
  readonly #look = (): void => this.#link.tell("look");

  #tell({ work, stirred, ended, lost }: News): void {
    for (const [queue, count] of work) this.#wake.work(queue, count);
    for (const queue of stirred) this.#wake.stir(queue);
    for (const [queue, ids] of ended) this.#wake.ended(queue, ids);
    for (const lease of lost) this.#wake.lost(lease);
  }
}
