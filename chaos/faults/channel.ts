import type { Socket } from "node:net";
import { now } from "../history/clock.ts";

/** `hold`: what is sent arrives when the hold is over, as after a partition that TCP survives. `drop`: never. */
export type Conduct = "pass" | "hold" | "drop" | { readonly delayMs: number };

interface Parcel {
  /** Undefined: the sender hung up. */
  readonly bytes: Buffer | undefined;
  readonly dueAt: number;
}

/** One direction of one connection. What is sent stays in order, whatever happens to it. */
export class Channel {
  readonly #to: Socket;
  #conduct: Conduct;
  #parcels: Parcel[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(to: Socket, conduct: Conduct) {
    this.#to = to;
    this.#conduct = conduct;
  }

  send(bytes: Buffer | undefined): void {
    // A wire that loses what is said also loses the goodbye.
    if (this.#conduct === "drop") return;
    const waitMs = typeof this.#conduct === "object" ? this.#conduct.delayMs : this.#conduct === "hold" ? Infinity : 0;
    this.#parcels.push({ bytes, dueAt: now() + waitMs });
    this.#deliver();
  }

  become(conduct: Conduct): void {
    this.#conduct = conduct;
    if (conduct === "pass") this.#parcels = this.#parcels.map(({ bytes }) => ({ bytes, dueAt: 0 }));
    this.#deliver();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#parcels = [];
  }

  #deliver(): void {
    clearTimeout(this.#timer);
    for (let [first] = this.#parcels; first !== undefined; [first] = this.#parcels) {
      const waitMs = first.dueAt - now();
      if (waitMs > 0) {
        if (waitMs !== Infinity) this.#timer = setTimeout(() => this.#deliver(), waitMs);
        return;
      }
      this.#parcels.shift();
      if (first.bytes === undefined) this.#to.destroy();
      else if (this.#to.writable) this.#to.write(first.bytes);
    }
  }
}
