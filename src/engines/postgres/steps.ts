import { type Clock, instant, pause } from "../../domain/clock.ts";
import type { Settlement, SettleResult } from "../../engine/port.ts";
import { NO_CLAIM, type QueueClaims, type WaitingClaim } from "./claims.ts";
import type { Due } from "./due.ts";
import { type Given, readGrants } from "./grants.ts";
import type { Lane, News, SettleCall } from "./lane.ts";
import type { Leases } from "./leases.ts";
import type { Link } from "./link.ts";
import type { Queues } from "./queues.ts";
import type { Rings } from "./rings.ts";
import { integer } from "./rows.ts";
import { LOOK_AGAIN_MS } from "./run-ahead.ts";
import { endedArguments, firstOfEach, settleArguments, trainArguments } from "./settlements.ts";
import { readAnswer, type StepAnswer, told } from "./step-answer.ts";
import { type Report, Train } from "./train.ts";
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
    const news = calls.flatMap(({ input }) => input);
    const claims = this.#nextClaims(news);
    const claim = claims?.first;
    if (news.length > 0 || claim !== undefined) await this.#step(calls, news, claims, claim);
  }

  async stepBeside(calls: readonly SettleCall[]): Promise<void> {
    const news = calls.flatMap(({ input }) => input);
    await this.#step(calls, news, this.#claimsWhereFreed(news), undefined, this.#parts.beside);
  }

  get mayStepBeside(): boolean {
    for (const { ahead, asleep } of this.#parts.leases.claims.values())
      if (ahead.isQuick && !asleep) return this.#isBesideOpen();
    return false;
  }

  /**
   * Nobody runs ahead on a key from now on, and soon it is known what was begun. This handle does not either, and says now what it has begun:
   * while a call of its waits for that, its lane does nothing else.
   */
  async calm(key: number): Promise<void> {
    const { link, schema, me, clock, leases } = this.#parts;
    for (const queue of leases.claims.keys()) leases.stop(queue);
    const begun = leases.trains().filter(({ hasNews }) => hasNews);
    if (begun.length > 0) await this.#step([], begun, undefined, undefined);
    const isKnown = begun.every(({ hasNews, isOver }) => isOver || !hasNews);
    const [row] = await link.query("baton_calm", `SELECT ${schema}.calm($1, $2)`, [isKnown ? me : 0, key]);
    await pause(clock, Math.min(row === undefined ? 0 : integer(row, 0), LOOK_AGAIN_MS));
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
  #nextClaims(news: readonly News[]): QueueClaims | undefined {
    const own = this.#claimsWhereFreed(news);
    if (own !== undefined && own.size > 0) return own;
    for (const claims of this.#parts.leases.claims.values()) if (claims.look && claims.size > 0) return claims;
    return own !== undefined && own.ahead.lack() > 0 && !this.#closed ? own : undefined;
  }

  #claimsWhereFreed([first]: readonly News[]): QueueClaims | undefined {
    if (first === undefined) return undefined;
    const { queues, leases } = this.#parts;
    return leases.claims.get(queues.known(first instanceof Train ? first.queue : first.lease.queue).id);
  }

  async #step(
    calls: readonly SettleCall[],
    news: readonly News[],
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
    const { reports, settlements } = told(news);
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
        ...trainArguments(reports),
        ...endedArguments(unique),
        ...settleArguments(unique),
        ...asked.values,
        due.shouldAsk(),
      ];
      const places = values.map((_, index) => `$${index + 1}`).join(", ");
      const rows = await (beside ?? link).query("baton_step", `SELECT * FROM ${schema}.step(${places})`, values);
      const answer = readAnswer(rows);
      this.#answerSettles(calls, reports, unique, answer);
      for (const { queue, rung } of answer.work) changed(queue, rung);
      for (const { queue, rung } of answer.outcomes) ended(queue, rung);
      if (claims !== undefined && request !== undefined) {
        const grants = readGrants(claims.queue, rows, since);
        for (const { grant } of grants) leases.unheard.heard(grant.lease);
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
      for (const { train } of reports) {
        train.isReporting = false;
        train.failed(error);
      }
      for (const { reject } of calls) reject(error);
      if (request !== undefined) claims?.ahead.keep([], ordered, request);
      // Those who wait do so for the step that looks for them.
      if (beside === undefined) claims?.fail(error);
    } finally {
      if (claim !== undefined) claim.looking = false;
    }
  }

  #answerSettles(
    calls: readonly SettleCall[],
    reports: readonly Report[],
    unique: readonly Settlement[],
    answer: StepAnswer,
  ): void {
    const { leases, vacuum } = this.#parts;
    const settled = new Set<Settlement>(unique.filter((_, index) => !answer.lost.has(index + 1)));
    this.#answerTrains(reports, answer, settled);
    for (const { lease } of unique) leases.over(lease);
    for (const { ended = [] } of settled) vacuum.note(1 + ended.length);
    for (const { input, resolve } of calls)
      resolve(input.map((one): SettleResult => (one instanceof Train || settled.has(one) ? "settled" : "lost")));
  }

  #answerTrains(reports: readonly Report[], answer: StepAnswer, settled: ReadonlySet<Settlement>): void {
    const { lane, leases, vacuum } = this.#parts;
    const again: Train[] = [];
    for (const report of reports) {
      const { train, last, done } = report;
      train.isReporting = false;
      if (answer.lostTrains.has(train.key)) {
        leases.loseTrain(train);
        continue;
      }
      if (answer.halted.has(train.key)) train.stop();
      leases.trainsOf(train.queue)?.reported(report, last !== undefined && settled.has(last) ? "settled" : "lost");
      vacuum.note(done.length);
      if (!train.isOver && train.hasNews) again.push(train);
    }
    if (again.length === 0) return;
    for (const train of again) train.isReporting = true;
    // Whoever asked hears of a failure from the train.
    lane.settle(again).catch(() => undefined);
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
    grants: readonly Given[],
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
