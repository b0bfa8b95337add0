import type { Outcome, OutcomeRequest } from "../../engine/port.ts";
import { type Answer, answered } from "./answered.ts";
import type { Handle } from "./handle.ts";
import type { Inspection, KnownOutcome } from "./inspect.ts";
import type { DeclaredQueue } from "./queues.ts";

/** What somebody sleeps over: `sleeper.kind` of the store. */
const OUTCOMES = 1;

interface WaitingOutcome extends Answer<Outcome | undefined> {
  readonly id: string;
}

/** Those who wait to hear how items of one queue end. */
class QueueOutcomes {
  readonly #waiting = new Set<WaitingOutcome>();
  look = false;

  get size(): number {
    return this.#waiting.size;
  }

  wait({ id, signal }: OutcomeRequest): Promise<Outcome | undefined> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(waiting);
        resolve(undefined);
      };
      const waiting: WaitingOutcome = { id, ...answered(signal, giveUp, { resolve, reject }) };
      this.#waiting.add(waiting);
      if (signal.aborted) giveUp();
    });
  }

  ids(): readonly string[] {
    return [...new Set(Array.from(this.#waiting, ({ id }) => id))];
  }

  /** What is not among them is not remembered: nobody will ever know. */
  tell(asked: readonly string[], known: ReadonlyMap<string, KnownOutcome>): void {
    const ids = new Set(asked);
    for (const waiting of this.#waiting) {
      const found = known.get(waiting.id);
      if (!ids.has(waiting.id) || (found !== undefined && found.outcome === undefined)) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(found?.outcome);
    }
  }

  fail(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }

  end(): void {
    for (const { resolve } of this.#waiting) resolve(undefined);
    this.#waiting.clear();
  }
}

/** Those who wait to hear how items end, in all queues. */
export class Outcomes {
  readonly #handle: Handle;
  readonly #inspection: Inspection;
  readonly #queues = new Map<number, QueueOutcomes>();
  #closed = false;

  constructor(handle: Handle, inspection: Inspection) {
    this.#handle = handle;
    this.#inspection = inspection;
  }

  async outcome(queue: DeclaredQueue, request: OutcomeRequest): Promise<Outcome | undefined> {
    const { lane, waits } = this.#handle;
    const { id } = request;
    const first = await lane.call(() => this.#inspection.outcomes(queue, [id]));
    const known = first.get(id);
    if (known === undefined || known.outcome !== undefined || request.signal.aborted || this.#closed)
      return known?.outcome;
    let outcomes = this.#queues.get(queue.id);
    if (outcomes === undefined) this.#queues.set(queue.id, (outcomes = new QueueOutcomes()));
    const waiting = outcomes.wait(request);
    // It may have ended between the question and the word that somebody waits.
    await lane.call(() => this.say(queue.id, true));
    outcomes.look = true;
    waits();
    lane.nudge();
    return await waiting;
  }

  /** The queues in which somebody waits. */
  waitingIn(): readonly number[] {
    return [...this.#queues].filter(([, { size }]) => size > 0).map(([queue]) => queue);
  }

  get hasWork(): boolean {
    for (const { look, size } of this.#queues.values()) if (look && size > 0) return true;
    return false;
  }

  /** Something may have ended in the queue, or in any. */
  lookAt(queue?: number): void {
    for (const [id, outcomes] of this.#queues)
      if ((queue === undefined || queue === id) && outcomes.size > 0) outcomes.look = true;
  }

  /** Whoever should be. */
  async serve(): Promise<void> {
    for (const [queue, outcomes] of this.#queues) if (outcomes.look) await this.#tell(queue, outcomes);
  }

  close(): void {
    this.#closed = true;
    for (const outcomes of this.#queues.values()) outcomes.end();
  }

  /** In the store: somebody waits, or no longer. */
  async say(queue: number, waits: boolean): Promise<void> {
    await this.#handle.link.call("sleep", this.#handle.me, queue, OUTCOMES, waits);
  }

  async #tell(queue: number, outcomes: QueueOutcomes): Promise<void> {
    outcomes.look = false;
    const declared = this.#handle.queues.byId(queue);
    const ids = outcomes.ids();
    if (ids.length === 0 || declared === undefined) return;
    try {
      outcomes.tell(ids, await this.#inspection.outcomes(declared, ids));
      if (outcomes.size === 0) await this.say(queue, false);
    } catch (error) {
      outcomes.fail(error);
    }
  }
}
