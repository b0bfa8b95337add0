import type { Instant } from "../../domain/clock.ts";
import { BatonError, Closed, QueueNotEmpty } from "../../domain/errors.ts";
import { LevelChooser } from "../../domain/level.ts";
import type * as port from "../../engine/port.ts";
import type { Locks } from "../../locks/port.ts";
import { admit } from "./admission.ts";
import { serve, serveHolds, take } from "./claims.ts";
import type { StoreCore } from "./core.ts";
import { cancel, pause, revive } from "./items.ts";
import { hold, renew, settleAll } from "./leases.ts";
import { deadReports, itemReport, keyReports, queueReport } from "./reports.ts";
import type { StoredQueue, WaitingClaim, WaitingHold } from "./state.ts";

/** One handle on a memory store. Its methods are single turns of the store; only `claim`, `hold` and `outcome` may wait. */
export class MemoryHandle implements port.Engine {
  readonly name = "memory";
  readonly runs = true;
  readonly #store: StoreCore;
  readonly #locks: Locks;
  /** Per queue, because each queue's levels are weighed on their own. */
  readonly #choosers = new Map<string, LevelChooser>();
  /** What ends the calls that wait. */
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(store: StoreCore, locks: Locks) {
    this.#store = store;
    this.#locks = locks;
  }

  async declare(request: port.DeclareRequest): Promise<port.QueueDeclaration> {
    this.#checkOpen();
    return { levels: this.#store.declare(request).levels };
  }

  async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    return this.#turn((now) =>
      submissions.map((submission): port.SubmitResult => {
        try {
          return admit(this.#store.queue(submission.queue), submission, now);
        } catch (error) {
          if (error instanceof BatonError) return { ok: false, error };
          throw error;
        }
      }),
    );
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    this.#checkOpen();
    const queue = this.#store.queue(request.queue);
    if (request.signal.aborted) return [];
    const chooser = this.#chooser(request.queue);
    const grants = this.#turn((now) => {
      // Those in line go first; what they leave is for this claim, which nobody would wake for it.
      serve(queue, now);
      return take(queue, request, chooser, now);
    });
    return grants.length > 0 ? grants : await this.#standInLine(queue, request, chooser);
  }

  async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    const { lease, queue } = this.#turn((now) => {
      const found = this.#store.queue(request.queue);
      // Those in line go first.
      serveHolds(found, now);
      return { queue: found, lease: hold(found, request, now) };
    });
    if (lease !== undefined || request.signal.aborted) return lease;
    return await this.#wait<port.Lease | undefined>(request.signal, undefined, (answer) => {
      const waiting: WaitingHold = { request, answer, ahead: undefined, behind: undefined };
      queue.holds.joinBack(waiting);
      this.#store.countWaiting(1);
      return () => {
        queue.holds.leave(waiting);
        this.#store.countWaiting(-1);
      };
    });
  }

  async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return this.#turn((now) =>
      renewals.map((renewal): port.RenewResult => {
        const queue = this.#store.find(renewal.lease.queue);
        return queue === undefined ? { ok: false } : renew(queue, renewal, now);
      }),
    );
  }

  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return this.#turn((now) => settleAll((name) => this.#store.find(name), settlements, now));
  }

  async find(request: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return this.#turn((now) => {
      const item = this.#store.queue(request.queue).items.get(request.id);
      return item === undefined ? undefined : itemReport(item, now);
    });
  }

  async outcome({ queue, id, signal }: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    const item = this.#turn(() => this.#store.queue(queue).items.get(id));
    if (item === undefined || item.outcome !== undefined || signal.aborted) return item?.outcome;
    const watchers = (item.watchers ??= new Set());
    return await this.#wait<port.Outcome | undefined>(signal, undefined, (answer) => {
      watchers.add(answer);
      return () => watchers.delete(answer);
    });
  }

  async cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    return this.#turn((now) => cancel(this.#store.queue(request.queue), request.id, now));
  }

  async pause(request: port.PauseRequest): Promise<void> {
    this.#turn((now) => pause(this.#store.queue(request.queue), request, now));
  }

  async deleteQueue({ queue: name, force }: port.DeleteQueueRequest): Promise<boolean> {
    return this.#turn(() => {
      const queue = this.#store.find(name);
      if (queue === undefined) return false;
      const { waiting, delayed, dead } = queue.counts;
      const leased = [...queue.keys.values()].filter(({ lease }) => lease !== undefined).length;
      if (!force && waiting + delayed + leased + dead > 0)
        throw new QueueNotEmpty(name, { waiting: waiting + delayed, leased, dead });
      this.#store.delete(queue);
      this.#choosers.delete(name);
      return true;
    });
  }

  async queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return this.#turn(() => {
      const queues = [...this.#store.queues()];
      return queues.filter(({ name }) => request.queue === undefined || name === request.queue).map(queueReport);
    });
  }

  async keys(request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    return this.#turn(() => keyReports(this.#store.queue(request.queue), request));
  }

  async dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return this.#turn(() => deadReports(this.#store.queue(request.queue), request));
  }

  async revive(request: port.ReviveRequest): Promise<number> {
    return this.#turn((now) => revive(this.#store.queue(request.queue), request, now));
  }

  locks(): Locks {
    return this.#locks;
  }

  async check(): Promise<readonly port.Finding[]> {
    this.#checkOpen();
    return [
      {
        severity: "warning",
        subject: "durability",
        detail: "This store lives in the memory of one process. Everything in it is lost when that process ends.",
        advice: "Use it for tests and for work that may be forgotten; otherwise connect to sqlite:FILE.",
      },
    ];
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const end of this.#waiting) end();
    await this.#locks.close();
  }

  #turn<T>(work: (now: Instant) => T): T {
    this.#checkOpen();
    return this.#store.turn(work);
  }

  async #standInLine(
    queue: StoredQueue,
    request: port.ClaimRequest,
    chooser: LevelChooser,
  ): Promise<readonly port.Grant[]> {
    return await this.#wait<readonly port.Grant[]>(request.signal, [], (answer) => {
      const claim: WaitingClaim = { request, chooser, answer, ahead: undefined, behind: undefined };
      queue.claims.joinBack(claim);
      this.#store.countWaiting(1);
      return () => {
        queue.claims.leave(claim);
        this.#store.countWaiting(-1);
      };
    });
  }

  /** Waits for `answer` to be called; gives `otherwise` when the signal fires or the handle closes first. */
  #wait<T>(
    signal: AbortSignal,
    otherwise: T,
    begin: (answer: (value: T | Promise<never>) => void) => () => void,
  ): Promise<T> {
    return new Promise((resolve) => {
      const answer = (value: T | Promise<never>): void => {
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(giveUp);
        leave();
        resolve(value);
      };
      const giveUp = (): void => answer(otherwise);
      signal.addEventListener("abort", giveUp);
      this.#waiting.add(giveUp);
      const leave = begin(answer);
    });
  }

  #chooser(queue: string): LevelChooser {
    let chooser = this.#choosers.get(queue);
    if (chooser === undefined) {
      chooser = new LevelChooser();
      this.#choosers.set(queue, chooser);
    }
    return chooser;
  }

  #checkOpen(): void {
    if (this.#closed) throw new Closed();
  }
}
