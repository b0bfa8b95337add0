import type { Outcome, OutcomeRequest } from "../../engine/port.ts";
import type { ServingHandle } from "./serving.ts";
import type { DeclaredQueue } from "./queues.ts";
import { type Waiter, Waiting } from "./waiting.ts";

/** What somebody sleeps over: `sleeper.kind` of the store. */
const OUTCOMES = 1;

type WaitingOutcome = Waiter<OutcomeRequest, Outcome | undefined>;

/** Those who wait to hear how items end. */
export class Outcomes {
  readonly #handle: ServingHandle;
  readonly waiting: Waiting<OutcomeRequest, Outcome | undefined> = new Waiting<OutcomeRequest, Outcome | undefined>(
    undefined,
  );

  constructor(handle: ServingHandle) {
    this.#handle = handle;
  }

  async outcome(queue: DeclaredQueue, request: OutcomeRequest): Promise<Outcome | undefined> {
    const { lane } = this.#handle;
    const known = await lane.call(() => this.#handle.inspection.outcomes(queue, [request.id]));
    const outcome = known.get(request.id);
    if (!known.has(request.id) || outcome !== undefined || request.signal.aborted) return outcome;
    const waiting = this.waiting.wait(queue, request);
    // It may have ended between the question and the word that somebody waits.
    await lane.call(() => this.say(queue.id, true));
    this.waiting.lookAt(queue.id);
    this.#handle.waits();
    lane.nudge();
    return await waiting;
  }

  /** The queues in which somebody waits. */
  waitingIn(): readonly number[] {
    return [...new Set(this.waiting.all().map(({ queue }) => queue.id))];
  }

  /** Whoever should be: those of a queue together. */
  async serve(): Promise<void> {
    const looking = this.waiting.all().filter(({ look }) => look);
    for (const waiters of Map.groupBy(looking, ({ queue }) => queue).values()) await this.#tell(waiters);
  }

  /** In the store: somebody waits, or no longer. */
  async say(queue: number, waits: boolean): Promise<void> {
    await this.#handle.link.call("sleep", this.#handle.me, queue, OUTCOMES, waits);
  }

  async #tell(waiters: readonly WaitingOutcome[]): Promise<void> {
    const [first] = waiters;
    if (first === undefined) return;
    const { queue } = first;
    for (const waiter of waiters) waiter.look = false;
    try {
      const known = await this.#handle.inspection.outcomes(queue, [
        ...new Set(waiters.map(({ request }) => request.id)),
      ]);
      for (const { request, answer } of waiters) {
        const outcome = known.get(request.id);
        // What is not among them is not remembered: nobody will ever know.
        if (outcome !== undefined || !known.has(request.id)) answer(outcome);
      }
      if (!this.waitingIn().includes(queue.id)) await this.say(queue.id, false);
    } catch (error) {
      for (const { fail } of waiters) fail(error);
    }
  }
}
