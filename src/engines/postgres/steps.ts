import { instant } from "../../domain/clock.ts";
import type { Settlement, SettleResult } from "../../engine/port.ts";
import { NO_CLAIM, type QueueClaims, type WaitingClaim } from "./claims.ts";
import type { ServingHandle } from "./serving.ts";
import type { SettleCall } from "./lane.ts";
import type { Link } from "./link.ts";
import { endedArguments, firstOfEach, settleArguments } from "./settlements.ts";
import { readAnswer, readGrants, type StepAnswer } from "./step-answer.ts";
import type { Vacuum } from "./vacuum.ts";

/** A server that gave no second connection is asked again after so long. */
const AGAIN_MS = 30_000;
/** So many leases that end are worth a step beside another: with fewer, each of the two would cost more than they gain. */
const WORTH_A_STEP = 48;

/** The statement that ends leases and hands out keys: what is asked of it, and who hears what of its answer. */
export class Steps {
  readonly #handle: ServingHandle;
  /**
   * A second connection, for a step beside another: the server needs longer for an item than a worker that has nothing to do but ask, and leases end
   * independently of one another. A worker that ends few at a time never gets one.
   */
  readonly #beside: Link | undefined;
  #triedAt = -Infinity;
  readonly #vacuum: Vacuum;
  #closed = false;

  constructor(handle: ServingHandle, beside: Link | undefined, vacuum: Vacuum) {
    this.#handle = handle;
    this.#beside = beside;
    this.#vacuum = vacuum;
  }

  /** For these, and for whoever waits for work. */
  async step(calls: readonly SettleCall[]): Promise<void> {
    const settlements = calls.flatMap(({ input }) => input);
    const claims = this.#nextClaims(settlements);
    if (settlements.length > 0 || claims !== undefined) await this.#step(this.#handle.link, calls, claims);
  }

  /** The same beside another one. */
  stepBeside(leases: number, take: () => readonly SettleCall[]): Promise<void> | undefined {
    if (this.#beside === undefined || leases < WORTH_A_STEP) return undefined;
    if (!this.#beside.isOpen) return this.#openBeside(this.#beside);
    const calls = take();
    const claims = this.#claimsWhereFreed(calls.flatMap(({ input }) => input));
    return this.#step(this.#beside, calls, claims?.asleep === false ? claims : undefined);
  }

  /** Nobody waits for it: a server may refuse it, or never answer. */
  #openBeside(beside: Link): undefined {
    const now = this.#handle.clock.monotonic();
    if (now - this.#triedAt < AGAIN_MS) return;
    this.#triedAt = now;
    beside.open().catch(() => undefined);
  }

  async #step(way: Link, calls: readonly SettleCall[], claims: QueueClaims | undefined): Promise<void> {
    const { link, clock, me, rings } = this.#handle;
    const isBeside = way !== link;
    const claim = claims?.first;
    const since = instant(clock);
    const got = isBeside ? undefined : claims?.beginLook();
    if (claim !== undefined) claim.isAsked = true;
    try {
      const unique = firstOfEach(calls.flatMap(({ input }) => input));
      const asked = claim === undefined ? undefined : claims?.asked(claim, isBeside);
      const values = [
        me,
        ...rings.take(),
        ...endedArguments(unique),
        ...settleArguments(unique),
        ...(asked?.values ?? NO_CLAIM),
        this.#handle.due.shouldAsk(),
      ];
      const rows = await way.call("step", ...values);
      const answer = readAnswer(rows);
      this.#answerSettles(calls, unique, answer);
      for (const { queue, rung } of answer.work) this.#handle.changed(queue, rung);
      for (const { queue, rung } of answer.outcomes) this.#handle.ended(queue, rung);
      if (claims === undefined || claim === undefined) return;
      const grants = readGrants(claims.queue, rows, since);
      if (grants.length > 0) got?.(grants.length);
      if (asked?.wakesLast === true && grants.length > 0) claims.wakeUp();
      if (!isBeside) this.#learn(claims, claim, grants.length, answer);
      else if (grants.length === 0) claims.look = true;
      if (grants.length > 0) this.#handle.leases.answer(claim, grants);
      else if (asked?.saysAsleep === true) {
        // What came between the look and the word that somebody sleeps was told to nobody: look once more.
        claims.asleep = true;
        claims.look = true;
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
      // Those who wait do so for the step that looks for them.
      if (claim !== undefined) claim.isAsked = false;
      claims?.fail(error);
    } finally {
      if (claim !== undefined) claims?.release(claim);
    }
  }

  close(): void {
    this.#closed = true;
  }

  /** Of those who wait for work, whoever asks for the queue in which something is freed; or the first. */
  #nextClaims(settlements: readonly Settlement[]): QueueClaims | undefined {
    const own = this.#claimsWhereFreed(settlements);
    if (own?.first !== undefined) return own;
    for (const claims of this.#handle.leases.claims.values())
      if (claims.look && claims.first !== undefined) return claims;
    return undefined;
  }

  #claimsWhereFreed([first]: readonly Settlement[]): QueueClaims | undefined {
    if (first === undefined) return undefined;
    return this.#handle.leases.claims.get(this.#handle.queues.known(first.lease.queue).id);
  }

  #answerSettles(calls: readonly SettleCall[], unique: readonly Settlement[], answer: StepAnswer): void {
    const settled = new Set<Settlement>(unique.filter((_, index) => !answer.lost.has(index + 1)));
    for (const { lease } of unique) this.#handle.leases.over(lease);
    for (const { ended = [] } of settled) this.#vacuum.note(1 + ended.length);
    for (const { input, resolve } of calls)
      resolve(input.map((one): SettleResult => (settled.has(one) ? "settled" : "lost")));
  }

  /** What a look tells the next one. */
  #learn(claims: QueueClaims, { request }: WaitingClaim, granted: number, { learnt }: StepAnswer): void {
    const { clock, lane } = this.#handle;
    this.#handle.due.in(claims.learn(learnt));
    const isWhole = granted >= request.max || !claims.lookBack();
    if (granted === 0 && !isWhole) claims.look = true;
    const againMs = claims.passedOver(learnt);
    if (againMs === undefined) return;
    clock.setTimer(againMs, () => {
      claims.look = true;
      if (!this.#closed) lane.nudge();
    });
  }
}
