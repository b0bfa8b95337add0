import { type Clock, instant } from "../../domain/clock.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import type { Link } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer } from "./rows.ts";

export interface WaitingHold {
  readonly queue: DeclaredQueue;
  readonly request: HoldRequest;
  readonly resolve: (lease: Lease | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** It is being tried: whatever comes of that is its answer. */
  trying: boolean;
  look: boolean;
}

/** Holds, and those that wait for their key. */
export class Holds {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #schema: string;
  readonly #me: number;
  readonly waiting: Set<WaitingHold> = new Set();
  /** Waited for no longer, whose marks are still in the store. */
  readonly givenUp: WaitingHold[] = [];

  constructor(link: Link, clock: Clock, schema: string, me: number) {
    this.#link = link;
    this.#clock = clock;
    this.#schema = schema;
    this.#me = me;
  }

  get hasWork(): boolean {
    if (this.givenUp.length > 0) return true;
    for (const { look } of this.waiting) if (look) return true;
    return false;
  }

  lookAt(queue?: number): boolean {
    let any = false;
    for (const hold of this.waiting) {
      if (queue !== undefined && hold.queue.id !== queue) continue;
      hold.look = true;
      any = true;
    }
    return any;
  }

  async try(queue: DeclaredQueue, { key, worker, leaseMs }: HoldRequest, waits: boolean): Promise<Lease | undefined> {
    const since = instant(this.#clock);
    const [row] = await this.#link.query("baton_hold", `SELECT * FROM ${this.#schema}.hold($1, $2, $3, $4, $5, $6)`, [
      this.#me,
      queue.id,
      key,
      worker,
      Math.ceil(leaseMs),
      waits,
    ]);
    if (row === undefined) return undefined;
    return { queue: queue.name, key, fence: integer(row, 1), since, handle: integer(row, 0) };
  }

  /** True: a key was listed, and those in other processes were not told. */
  async wantNoMore({ queue, request }: Pick<WaitingHold, "queue" | "request">): Promise<boolean> {
    const [row] = await this.#link.query("baton_want_no_more", `SELECT ${this.#schema}.want_no_more($1, $2, $3)`, [
      this.#me,
      queue.id,
      request.key,
    ]);
    return row?.[0] === false;
  }
}
