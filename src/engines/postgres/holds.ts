import { instant } from "../../domain/clock.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import type { ServingHandle } from "./serving.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer } from "./rows.ts";
import { type Waiter, Waiting } from "./waiting.ts";

type WaitingHold = Waiter<HoldRequest, Lease | undefined>;
type Wanted = Pick<WaitingHold, "queue" | "request">;

/** Holds, and those that wait for their key. */
export class Holds {
  readonly #handle: ServingHandle;
  readonly waiting: Waiting<HoldRequest, Lease | undefined> = new Waiting<HoldRequest, Lease | undefined>(undefined);

  constructor(handle: ServingHandle) {
    this.#handle = handle;
  }

  /** Resolves when it has the key, or with nothing when nobody waits for it any more. */
  async hold(queue: DeclaredQueue, request: HoldRequest): Promise<Lease | undefined> {
    const { lane } = this.#handle;
    const wanted = { queue, request };
    const lease = (await lane.call(() => this.#try(wanted, !request.signal.aborted))) ?? (await this.#wait(wanted));
    if (lease !== undefined) return lease;
    const removed = lane.call(() => this.#removeMark(wanted));
    // Whoever closes the handle waits for what is under way, but not for longer than a moment.
    if (request.signal.aborted) await removed;
    return undefined;
  }

  /** Whoever should be. */
  async serve(): Promise<void> {
    for (const hold of this.waiting.all()) if (hold.look) await this.#tryAgain(hold);
  }

  async #wait({ queue, request }: Wanted): Promise<Lease | undefined> {
    const waiting = this.waiting.wait(queue, request);
    this.#handle.waits();
    this.#handle.lane.nudge();
    return await waiting;
  }

  async #tryAgain(hold: WaitingHold): Promise<void> {
    hold.look = false;
    hold.isAsked = true;
    try {
      const lease = await this.#try(hold, true);
      if (lease !== undefined) hold.answer(lease);
      else await this.#handle.due.ask();
    } catch (error) {
      hold.fail(error);
    } finally {
      this.waiting.release(hold);
    }
  }

  async #try({ queue, request }: Wanted, waits: boolean): Promise<Lease | undefined> {
    const { link, clock, me } = this.#handle;
    const { key, worker, leaseMs, lost } = request;
    const since = instant(clock);
    const [row] = await link.call("hold", me, queue.id, key, worker, Math.ceil(leaseMs), waits);
    if (row === undefined) return undefined;
    const lease = { queue: queue.name, key, fence: integer(row, 1), since, handle: integer(row, 0) };
    this.#handle.leases.took(lease, lost);
    return lease;
  }

  /** A mark that cannot be removed now costs its key a moment, once. */
  async #removeMark({ queue, request }: Wanted): Promise<void> {
    const { link, me } = this.#handle;
    try {
      const [row] = await link.call("want_no_more", me, queue.id, request.key);
      this.#handle.changed(queue.id, row?.[0] !== false);
    } catch {
      // The key is free again by itself.
    }
  }
}
