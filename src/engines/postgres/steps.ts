import { type Clock, instant } from "../../domain/clock.ts";
import type { Grant, Settlement, SettleResult } from "../../engine/port.ts";
import { NO_CLAIM, type QueueClaims, type WaitingClaim } from "./claims.ts";
import type { Due } from "./due.ts";
import { readGrants } from "./grants.ts";
import type { Lane, SettleCall } from "./lane.ts";
import type { Leases } from "./leases.ts";
import type { Link } from "./link.ts";
import type { Queues } from "./queues.ts";
import type { Rings } from "./rings.ts";
import { endedArguments, firstOfEach, settleArguments } from "./settlements.ts";
import { readAnswer, type StepAnswer } from "./step-answer.ts";
import type { Vacuum } from "./vacuum.ts";

/** A server that gave no second connection is asked again after so long. */
const BESIDE_AGAIN_MS = 30_000;

export interface StepsParts {
  readonly link: Link;
  /** For steps beside others, where there may be a second connection. */
  readonly beside: Link | undefined;
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
  #triedBesideAt = -Infinity;
  #closed = false;

  constructor(parts: StepsParts) {
    this.#parts = parts;
  }

  /** For these, and for whoever waits for work. */
  async step(calls: readonly SettleCall[]): Promise<void> {
    const settlements = calls.flatMap(({ input }) => input);
    const claims = this.#nextClaims(settlements);
    const claim = claims?.first;
    if (settlements.length > 0 || claim !== undefined) await this.#step(calls, settlements, claims, claim);
  }

  async stepBeside(calls: readonly SettleCall[]): Promise<void> {
    const settlements = calls.flatMap(({ input }) => input);
    await this.#step(calls, settlements, this.#claimsWhereFreed(settlements), undefined, this.#parts.beside);
  }

  get mayStepBeside(): boolean {
    for (const { ahead, asleep } of this.#parts.leases.claims.values())
      if (ahead.isQuick && !asleep) return this.#isBesideOpen();
    return false;
  }

  close(): void {
    this.#closed = true;
  }

  /** Opened without anybody waiting for it: a server may refuse a second connection, or never answer. */
  #isBesideOpen(): boolean {
    const { beside, clock } = this.#parts;
    if (beside === undefined || beside.isOpen) return beside !== undefined;
    if (clock.monotonic() - this.#triedBesideAt < BESIDE_AGAIN_MS) return false;
    this.#triedBesideAt = clock.monotonic();
    beside.open().catch(() => undefined);
    return false;
  }

  /** Of those who wait for work, whoever asks for the queue in which something is freed; or the first. */
  #nextClaims(settlements: readonly Settlement[]): QueueClaims | undefined {
    const own = this.#claimsWhereFreed(settlements);
    if (own !== undefined && own.size > 0) return own;
    for (const claims of this.#parts.leases.claims.values()) if (claims.look && claims.size > 0) return claims;
    return own !== undefined && own.ahead.lack() > 0 && !this.#closed ? own : undefined;
  }

  #claimsWhereFreed([first]: readonly Settlement[]): QueueClaims | undefined {
    if (first === undefined) return undefined;
    const { queues, leases } = this.#parts;
    return leases.claims.get(queues.known(first.lease.queue).id);
  }

  async #step(
    calls: readonly SettleCall[],
    settlements: readonly Settlement[],
    claims: QueueClaims | undefined,
    claim: WaitingClaim | undefined,
    beside?: Link,
  ): Promise<void> {
    const { link, clock, schema, me, leases, rings, due, changed, ended } = this.#parts;
    const since = instant(clock);
    const got = beside === undefined ? claims?.beginLook() : undefined;
    const request = claim?.request ?? claims?.ahead.request;
    let ordered = 0;
    if (claim !== undefined) claim.looking = true;
    try {
      const unique = firstOfEach(settlements);
      if (claims !== undefined && request !== undefined) ordered = claims.ahead.order(request);
      const asked =
        claims === undefined || request === undefined
          ? NO_CLAIM
          : claims.asked(claim, request, ordered, beside !== undefined);
      const values = [
        me,
        ...rings.take(),
        ...endedArguments(unique),
        ...settleArguments(unique),
        ...asked.values,
        due.shouldAsk(),
      ];
      const places = values.map((_, index) => `$${index + 1}`).join(", ");
      const rows = await (beside ?? link).query("baton_step", `SELECT * FROM ${schema}.step(${places})`, values);
      const answer = readAnswer(rows);
      this.#answerSettles(calls, unique, answer);
      for (const { queue, rung } of answer.work) changed(queue, rung);
      for (const { queue, rung } of answer.outcomes) ended(queue, rung);
      if (claims !== undefined && request !== undefined) {
        const grants = readGrants(claims.queue, rows, since);
        for (const { lease } of grants) leases.unheard.heard(lease);
        if (grants.length > 0) got?.(grants.length);
        if (asked.wakesLast && grants.length > 0) claims.wakeUp();
        // Whoever asked may have been served by something else meanwhile.
        const direct = claim !== undefined && claims.has(claim) ? claim.request.max : 0;
        claims.ahead.keep(grants.slice(direct), ordered, request);
        ordered = 0;
        if (beside === undefined) this.#learn(claims, claim, grants.length, answer);
        this.#answerClaims(claims, claim, grants.slice(0, direct), asked.saysAsleep && grants.length === 0);
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
      if (request !== undefined) claims?.ahead.keep([], ordered, request);
      // Those who wait do so for the step that looks for them.
      if (beside === undefined) claims?.fail(error);
    } finally {
      if (claim !== undefined) claim.looking = false;
    }
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
  #learn(claims: QueueClaims, claim: WaitingClaim | undefined, granted: number, { learnt }: StepAnswer): void {
    this.#parts.due.in(claims.learn(learnt));
    const isWhole = granted >= (claim?.request.max ?? 0) || !claims.lookBack();
    if (granted === 0 && !isWhole) claims.look = true;
    const againMs = claims.passedOver(learnt);
    if (againMs === undefined) return;
    this.#parts.clock.setTimer(againMs, () => {
      claims.look = true;
      if (!this.#closed) this.#parts.lane.nudge();
    });
  }

  #answerClaims(
    claims: QueueClaims,
    claim: WaitingClaim | undefined,
    grants: readonly Grant[],
    saidAsleep: boolean,
  ): void {
    const { leases } = this.#parts;
    if (this.#closed) claims.ahead.giveBack();
    if (claim !== undefined && grants.length > 0) leases.answer(claims, claim, grants);
    else if (claim !== undefined && (claim.request.signal.aborted || this.#closed)) {
      claims.remove(claim);
      claim.resolve([]);
    }
    // Who came while this was under way, or found nothing while another step did.
    leases.serve(claims);
    // What came between the look and the word that somebody sleeps was told to nobody: look once more.
    if (!saidAsleep) return;
    claims.asleep = true;
    claims.look = true;
  }
}
