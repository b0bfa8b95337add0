import { type Clock, instant } from "../../domain/clock.ts";
import type { Grant, Settlement, SettleResult } from "../../engine/port.ts";
import { NO_CLAIM, type QueueClaims, type WaitingClaim } from "./claims.ts";
import type { Due } from "./due.ts";
import type { Lane, SettleCall } from "./lane.ts";
import type { Leases } from "./leases.ts";
import type { Link } from "./link.ts";
import type { Queues } from "./queues.ts";
import type { Rings } from "./rings.ts";
import { endedArguments, firstOfEach, settleArguments } from "./settlements.ts";
import { readAnswer, readGrants, type StepAnswer } from "./step-answer.ts";
import type { Vacuum } from "./vacuum.ts";

export interface StepsParts {
  readonly link: Link;
  readonly clock: Clock;
  readonly schema: string;
  readonly me: number;
  readonly queues: Queues;
  readonly lane: Lane;
  readonly leases: Leases;
  readonly rings: Rings;
  readonly due: Due;
  readonly vacuum: Vacuum;
  readonly changed: (queue: number, rung: boolean) => void;
  readonly ended: (queue: number, rung: boolean) => void;
}

/** The statement that ends leases and hands out keys: what is asked of it, and who hears what of its answer. */
export class Steps {
  readonly #parts: StepsParts;
  #closed = false;

  constructor(parts: StepsParts) {
    this.#parts = parts;
  }

  /** For these, and for whoever waits for work. */
  async step(calls: readonly SettleCall[]): Promise<void> {
    const { link, clock, schema, me, rings, due, changed, ended } = this.#parts;
    const settlements = calls.flatMap(({ input }) => input);
    const claims = this.#nextClaims(settlements);
    const claim = claims?.first;
    if (settlements.length === 0 && claim === undefined) return;
    const since = instant(clock);
    const got = claims?.beginLook();
    if (claim !== undefined) claim.looking = true;
    try {
      const unique = firstOfEach(settlements);
      const asked = claim === undefined ? undefined : claims?.asked(claim);
      const values = [
        me,
        ...rings.take(),
        ...endedArguments(unique),
        ...settleArguments(unique),
        ...(asked?.values ?? NO_CLAIM),
        due.shouldAsk(),
      ];
      const places = values.map((_, index) => `$${index + 1}`).join(", ");
      const rows = await link.query("baton_step", `SELECT * FROM ${schema}.step(${places})`, values);
      const answer = readAnswer(rows);
      this.#answerSettles(calls, unique, answer);
      for (const { queue, rung } of answer.work) changed(queue, rung);
      for (const { queue, rung } of answer.outcomes) ended(queue, rung);
      if (claims === undefined || claim === undefined) return;
      const grants = readGrants(claims.queue, rows, since);
      if (grants.length > 0) got?.(grants.length);
      if (asked?.wakesLast === true && grants.length > 0) claims.wakeUp();
      this.#learn(claims, claim, grants.length, answer);
      this.#answerClaim(claims, claim, grants, asked?.saysAsleep === true && grants.length === 0);
    } catch (error) {
      for (const { reject } of calls) reject(error);
      // Those who wait do so for the step that looks for them.
      claims?.fail(error);
    } finally {
      if (claim !== undefined) claim.looking = false;
    }
  }

  close(): void {
    this.#closed = true;
  }

  /** Of those who wait for work, whoever asks for the queue in which something is freed; or the first. */
  #nextClaims([first]: readonly Settlement[]): QueueClaims | undefined {
    const { queues, leases } = this.#parts;
    const own = first === undefined ? undefined : leases.claims.get(queues.known(first.lease.queue).id);
    if (own !== undefined && own.size > 0) return own;
    for (const claims of leases.claims.values()) if (claims.look && claims.size > 0) return claims;
    return undefined;
  }

  #answerSettles(calls: readonly SettleCall[], unique: readonly Settlement[], answer: StepAnswer): void {
    const { leases, vacuum } = this.#parts;
    const settled = new Set<Settlement>(unique.filter((_, index) => !answer.lost.has(index + 1)));
    for (const { lease } of unique) leases.over(lease);
    for (const { ended = [] } of settled) vacuum.note(1 + ended.length);
    for (const { input, resolve } of calls)
      resolve(input.map((one): SettleResult => (settled.has(one) ? "settled" : "lost")));
  }

  /** What a look tells the next one. */
  #learn(claims: QueueClaims, { request }: WaitingClaim, granted: number, { learnt }: StepAnswer): void {
    const { due, clock, lane } = this.#parts;
    due.in(claims.learn(learnt));
    const isWhole = granted >= request.max || !claims.lookBack();
    if (granted === 0 && !isWhole) claims.look = true;
    const againMs = claims.passedOver(learnt);
    if (againMs === undefined) return;
    clock.setTimer(againMs, () => {
      claims.look = true;
      if (!this.#closed) lane.nudge();
    });
  }

  #answerClaim(claims: QueueClaims, claim: WaitingClaim, grants: readonly Grant[], saidAsleep: boolean): void {
    const { leases } = this.#parts;
    if (grants.length > 0 || claim.request.signal.aborted || this.#closed) leases.answer(claims, claim, grants);
    // What came between the look and the word that somebody sleeps was told to nobody: look once more.
    if (!saidAsleep) return;
    claims.asleep = true;
    claims.look = true;
  }
}
