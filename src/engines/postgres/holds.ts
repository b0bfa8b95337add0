import { instant } from "../../domain/clock.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import { answered } from "./answered.ts";
import type { Due } from "./due.ts";
import type { Handle } from "./handle.ts";
import type { Leases } from "./leases.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer } from "./rows.ts";

interface Wanted {
  readonly queue: DeclaredQueue;
  readonly request: HoldRequest;
}

interface WaitingHold extends Wanted {
  readonly resolve: (lease: Lease | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** It is being tried: whatever comes of that is its answer. */
  trying: boolean;
  look: boolean;
}

/** Holds, and those that wait for their key. */
export class Holds {
  readonly #handle: Handle;
  readonly #leases: Leases;
  readonly #due: Due;
  readonly #waiting = new Set<WaitingHold>();
  /** Waited for no longer, whose marks are still in the store. */
  readonly #givenUp: Wanted[] = [];
  #closed = false;

  constructor(handle: Handle, leases: Leases, due: Due) {
    this.#handle = handle;
    this.#leases = leases;
    this.#due = due;
  }

  /** Resolves when it has the key, or with nothing when nobody waits for it any more. */
  async hold(queue: DeclaredQueue, request: HoldRequest): Promise<Lease | undefined> {
    const { lane } = this.#handle;
    const lease = await lane.call(() => this.#try(queue, request, !request.signal.aborted));
    if (lease !== undefined) return lease;
    if (request.signal.aborted) {
      await lane.call(() => this.#giveUpMark({ queue, request }));
      return undefined;
    }
    return await new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (waiting.trying || !this.#waiting.delete(waiting)) return;
        this.#givenUp.push(waiting);
        lane.nudge();
        void lane.quiet().then(() => resolve(undefined));
      };
      const answers = answered(request.signal, giveUp, { resolve, reject });
      const waiting: WaitingHold = { queue, request, ...answers, trying: false, look: true };
      this.#waiting.add(waiting);
      this.#handle.waits();
      lane.nudge();
    });
  }

  get areWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  get hasWork(): boolean {
    if (this.#givenUp.length > 0) return true;
    for (const { look } of this.#waiting) if (look) return true;
    return false;
  }

  lookAt(queue?: number): void {
    for (const hold of this.#waiting) if (queue === undefined || hold.queue.id === queue) hold.look = true;
  }

  /** Whoever should be. */
  async serve(): Promise<void> {
    for (const wanted of this.#givenUp.splice(0)) await this.#giveUpMark(wanted);
    for (const hold of this.#waiting) if (hold.look) await this.#tryAgain(hold);
  }

  close(): void {
    this.#closed = true;
    for (const hold of this.#waiting) {
      if (hold.trying) continue;
      this.#waiting.delete(hold);
      this.#givenUp.push(hold);
      hold.resolve(undefined);
    }
  }

  async #tryAgain(hold: WaitingHold): Promise<void> {
    hold.look = false;
    hold.trying = true;
    try {
      const lease = await this.#try(hold.queue, hold.request, true);
      if (lease !== undefined) {
        this.#waiting.delete(hold);
        hold.resolve(lease);
      } else if (hold.request.signal.aborted || this.#closed) {
        this.#waiting.delete(hold);
        await this.#giveUpMark(hold);
        hold.resolve(undefined);
      } else await this.#due.ask();
    } catch (error) {
      this.#waiting.delete(hold);
      hold.reject(error);
    } finally {
      hold.trying = false;
    }
  }

  async #try(queue: DeclaredQueue, request: HoldRequest, waits: boolean): Promise<Lease | undefined> {
    const { link, clock, me } = this.#handle;
    const { key, worker, leaseMs, lost } = request;
    const since = instant(clock);
    const [row] = await link.call("hold", me, queue.id, key, worker, Math.ceil(leaseMs), waits);
    if (row === undefined) return undefined;
    const lease = { queue: queue.name, key, fence: integer(row, 1), since, handle: integer(row, 0) };
    this.#leases.took(lease, lost);
    return lease;
  }

  /** A mark that cannot be removed now costs its key a moment, once. */
  async #giveUpMark({ queue, request }: Wanted): Promise<void> {
    const { link, me, changed } = this.#handle;
    try {
      const [row] = await link.call("want_no_more", me, queue.id, request.key);
      changed(queue.id, row?.[0] !== false);
    } catch {
      // The key is free again by itself.
    }
  }
}
