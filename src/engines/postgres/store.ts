import { type Clock, instant, pause, type Timer } from "../../domain/clock.ts";
import { Closed } from "../../domain/errors.ts";
import type {
  ClaimRequest,
  Finding,
  Grant,
  HoldRequest,
  Lease,
  Outcome,
  OutcomeRequest,
  Settlement,
  SettleResult,
} from "../../engine/port.ts";
import { HeldLeases } from "../../engine/held-leases.ts";
import type { Wake } from "../../wake/wake.ts";
import { answered } from "./answered.ts";
import { Bell, type Signal } from "./bell.ts";
import { ForeignBell } from "./foreign-bell.ts";
import { QueueClaims, type WaitingClaim } from "./claims.ts";
import { Forgetting } from "./forgetting.ts";
import { readGrants } from "./grants.ts";
import { Holds, type WaitingHold } from "./holds.ts";
import { Inspection } from "./inspect.ts";
import { Lane, type LaneWork, type SettleCall, type SubmitCall } from "./lane.ts";
import type { Connections, Link, Row } from "./link.ts";
import { QueueOutcomes } from "./outcomes.ts";
import { type DeclaredQueue, Queues } from "./queues.ts";
import { Rings } from "./rings.ts";
import { flag, integer } from "./rows.ts";
import { channelOf } from "./schema.ts";
import { firstOfEach, settleArguments } from "./settlements.ts";
import { Submitter } from "./submitter.ts";
import { Unheard } from "./unheard.ts";
import { Vacuum } from "./vacuum.ts";

/** Whoever waits looks by himself this often: a wake may be lost. */
const LOOK_EVERY_MS = 2_000;
/** And this often while nothing can be heard. */
const DEAF_LOOK_EVERY_MS = 250;
/** A busy queue asks this often whether anything has become due. */
const ASK_WHAT_IS_DUE_MS = 20;
/** A server that gave no second connection is asked again after so long. */
const BESIDE_AGAIN_MS = 30_000;
/** What could not be given back is given back again after so long: the server is away, or a connection was lost. */
const GIVE_BACK_AGAIN_MS = 100;
/** Something is due, but another process is at it: look again soon. */
const DUE_AGAIN_MS = 5;

const LOST = 1;
const WORK = 2;
const OUTCOMES = 3;
const LEARNT = 4;

export interface StoreParts {
  readonly link: Link;
  /** For steps beside others, where there may be a second connection. */
  readonly beside: Link | undefined;
  readonly connections: Connections;
  readonly clock: Clock;
  readonly schema: string;
  /** The number of this handle, by which others tell it things. */
  readonly me: number;
  /** Carries signals about queues in place of NOTIFY. */
  readonly wake?: Wake;
}

/**
 * The store as one handle sees it: a lane of calls, those who wait, and what wakes them. Somebody who waits is served by the
 * next step of the lane; whatever may have changed something for him (`look`) is a call of this handle, a signal of another, or the time.
 */
export class Store implements LaneWork {
  readonly #parts: StoreParts;
  readonly queues: Queues;
  readonly lane: Lane;
  readonly inspection: Inspection;
  readonly #bell: Bell;
  readonly #foreign: ForeignBell | undefined;
  readonly #holds: Holds;
  readonly #vacuum: Vacuum;
  readonly #submitter: Submitter;
  readonly #forgetting: Forgetting;
  readonly #unheard: Unheard;
  readonly #rings = new Rings();
  readonly #claims = new Map<number, QueueClaims>();
  readonly #outcomes = new Map<number, QueueOutcomes>();
  readonly #held = new HeldLeases();
  readonly #cellWatchers = new Set<(name: string | undefined) => void>();
  #dueTimer: Timer | undefined;
  #lookTimer: Timer | undefined;
  #due = false;
  #sayAsleep = false;
  #askedWhatIsDueAt = -Infinity;
  #triedBesideAt = -Infinity;
  #closed = false;

  constructor(parts: StoreParts) {
    const { link, connections, clock, schema, me } = parts;
    this.#parts = parts;
    this.queues = new Queues(link, schema);
    this.lane = new Lane(this);
    this.inspection = new Inspection(link, schema);
    this.#holds = new Holds(link, clock, schema, me);
    this.#vacuum = new Vacuum(connections, clock, schema);
    this.#forgetting = new Forgetting(link, clock, schema);
    this.#submitter = new Submitter({
      ...parts,
      queues: this.queues,
      rings: this.#rings,
      again: (call) => void this.lane.call(() => this.submit([call])),
      changed: (queue, rung) => this.changed(queue, rung),
      ended: (queue) => this.ended(queue, false),
    });
    const missed = (): void => this.#lookEverywhere();
    this.#bell = new Bell(connections, clock, channelOf(schema), (signal) => this.#hear(signal), missed);
    this.#foreign = parts.wake === undefined ? undefined : this.#hearFrom(parts.wake);
    this.#unheard = new Unheard({
      ...parts,
      queues: this.queues,
      alone: (run) => this.lane.call(run),
      giveBack: (leases) => this.#giveBack(leases),
    });
    for (const one of [link, parts.beside]) if (one !== undefined) one.onUnknown = () => this.#unheard.suspect();
  }

  #hearFrom(wake: Wake): ForeignBell {
    const { link, me } = this.#parts;
    const idle = (queue: number): number => this.#claims.get(queue)?.size ?? 0;
    const foreign = new ForeignBell({ wake, queues: this.queues, me, idle, hear: (signal) => this.#hear(signal) });
    link.onNotice = (message) => foreign.note(message);
    link.onDone = () => foreign.tell();
    return foreign;
  }

  async listen(): Promise<void> {
    await this.#bell.listen();
  }

  assertOpen(): void {
    if (this.#closed) throw new Closed();
  }

  claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const claims = this.#claimsOf(this.queues.get(request.queue));
    this.#foreign?.listen(claims.queue);
    claims.ahead.ask(request);
    const kept = claims.ahead.take(request);
    if (kept.length > 0) return Promise.resolve(this.#handOut(claims, request, kept));
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (!waiting.looking && claims.remove(waiting)) resolve([]);
      };
      const waiting: WaitingClaim = {
        request,
        ...answered(request.signal, giveUp, { resolve, reject }),
        looking: false,
      };
      claims.add(waiting);
      this.#watch();
      this.lane.nudge();
    });
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    if (settlements.length === 0) return Promise.resolve([]);
    for (const { ahead } of this.#claims.values()) ahead.end(settlements);
    return this.lane.settle(settlements);
  }

  async hold(request: HoldRequest): Promise<Lease | undefined> {
    const queue = this.queues.get(request.queue);
    this.#foreign?.listen(queue);
    const lease = await this.lane.call(() => this.#holds.try(queue, request, !request.signal.aborted));
    if (lease !== undefined) this.#took(lease, request);
    if (lease !== undefined || request.signal.aborted) {
      if (lease === undefined) await this.lane.call(() => this.#giveUpMark(queue, request));
      return lease;
    }
    return await new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (waiting.trying || !this.#holds.waiting.delete(waiting)) return;
        this.#holds.givenUp.push(waiting);
        this.lane.nudge();
        void this.lane.quiet().then(() => resolve(undefined));
      };
      const answers = answered(request.signal, giveUp, { resolve, reject });
      const waiting: WaitingHold = { queue, request, ...answers, trying: false, look: true };
      this.#holds.waiting.add(waiting);
      this.#watch();
      this.lane.nudge();
    });
  }

  async outcome(request: OutcomeRequest): Promise<Outcome | undefined> {
    const queue = this.queues.get(request.queue);
    this.#foreign?.listen(queue);
    const { id } = request;
    const first = await this.lane.call(() => this.inspection.outcomes(queue, [id]));
    const known = first.get(id);
    if (known === undefined || known.outcome !== undefined || request.signal.aborted || this.#closed)
      return known?.outcome;
    let outcomes = this.#outcomes.get(queue.id);
    if (outcomes === undefined) this.#outcomes.set(queue.id, (outcomes = new QueueOutcomes()));
    const waiting = outcomes.wait(request);
    // It may have ended between the question and the word that somebody waits.
    await this.lane.call(() => this.#sleep(queue.id, 1, true));
    outcomes.look = true;
    this.#watch();
    this.lane.nudge();
    return await waiting;
  }

  /** Something happened to a queue by a call of this handle; others were told, or not. */
  changed(queue: number, rung: boolean): void {
    this.#lookFor(queue);
    if (!rung) this.#rings.addWork(queue);
  }

  ended(queue: number, rung: boolean): void {
    const outcomes = this.#outcomes.get(queue);
    if (outcomes !== undefined && outcomes.size > 0) outcomes.look = true;
    if (!rung) this.#rings.addOutcomes(queue);
  }

  /** Calls back with the names of cells that changed, and with nothing when any may have. */
  watchCells(changed: (name: string | undefined) => void): void {
    this.#cellWatchers.add(changed);
    this.#watch();
  }

  async sayThatCellsAreWatched(): Promise<void> {
    await this.lane.call(() => this.#sleep(0, 2, true));
  }

  get hasWaiting(): boolean {
    if (this.#due || this.#sayAsleep || this.#holds.hasWork) return true;
    for (const { look, size } of this.#claims.values()) if (look && size > 0) return true;
    for (const { look, size } of this.#outcomes.values()) if (look && size > 0) return true;
    return false;
  }

  async submit(calls: readonly SubmitCall[]): Promise<void> {
    await this.#submitter.submit(calls);
  }

  async step(calls: readonly SettleCall[]): Promise<void> {
    const settlements = calls.flatMap(({ input }) => input);
    const claims = this.#nextClaims(settlements);
    const claim = claims?.first;
    if (settlements.length > 0 || claim !== undefined) await this.#step(calls, settlements, claims, claim);
    await this.#serveOthers();
  }

  get mayStepBeside(): boolean {
    for (const { ahead, asleep } of this.#claims.values()) if (ahead.isQuick && !asleep) return this.#isBesideOpen();
    return false;
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

  async stepBeside(calls: readonly SettleCall[]): Promise<void> {
    const settlements = calls.flatMap(({ input }) => input);
    await this.#step(calls, settlements, this.#claimsWhereFreed(settlements), undefined, this.#parts.beside);
  }

  /** Of those who wait for work, whoever asks for the queue in which something is freed; or the first. */
  #nextClaims(settlements: readonly Settlement[]): QueueClaims | undefined {
    const own = this.#claimsWhereFreed(settlements);
    if (own !== undefined && own.size > 0) return own;
    for (const claims of this.#claims.values()) if (claims.look && claims.size > 0) return claims;
    return own !== undefined && own.ahead.lack() > 0 && !this.#closed ? own : undefined;
  }

  #claimsWhereFreed([first]: readonly Settlement[]): QueueClaims | undefined {
    return first === undefined ? undefined : this.#claims.get(this.queues.get(first.lease.queue).id);
  }

  async #step(
    calls: readonly SettleCall[],
    settlements: readonly Settlement[],
    claims: QueueClaims | undefined,
    claim: WaitingClaim | undefined,
    beside?: Link,
  ): Promise<void> {
    const { schema, me, clock } = this.#parts;
    const link = beside ?? this.#parts.link;
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
          : claims.arguments(claim, request, ordered, beside !== undefined);
      const saidAsleep = asked[7] === true;
      const rows = await link.query(
        "baton_step",
        `SELECT * FROM ${schema}.step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
        [me, ...this.#rings.take(), ...settleArguments(unique), ...asked, this.#shouldAskWhatIsDue()],
      );
      this.#answerSettles(calls, settlements, unique, rows);
      for (const row of rows) {
        const kind = integer(row, 0);
        if (kind === WORK) this.changed(integer(row, 1), integer(row, 3) === 1);
        else if (kind === OUTCOMES) this.ended(integer(row, 1), integer(row, 3) === 1);
      }
      if (claims !== undefined && request !== undefined) {
        const grants = readGrants(claims.queue, rows, since);
        for (const { lease } of grants) this.#unheard.heard(lease);
        if (grants.length > 0) got?.(grants.length);
        if (asked[8] === true && grants.length > 0) claims.wakeUp();
        claims.ahead.keep(grants.slice(claim?.request.max ?? 0), ordered, request);
        ordered = 0;
        if (beside === undefined) this.#learn(claims, claim, grants, rows);
        this.#answerClaims(claims, claim, grants, saidAsleep);
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
      if (request !== undefined) claims?.ahead.keep([], ordered, request);
      // Those who wait do so for the step that looks for them.
      if (beside === undefined && claims !== undefined) this.#failClaims(claims, error);
    } finally {
      if (claim !== undefined) claim.looking = false;
    }
  }

  #answerSettles(
    calls: readonly SettleCall[],
    settlements: readonly Settlement[],
    unique: readonly Settlement[],
    rows: readonly Row[],
  ): void {
    if (calls.length === 0) return;
    const settled = new Set<Settlement>(unique);
    for (const row of rows) {
      const lost = integer(row, 0) === LOST ? unique[integer(row, 1) - 1] : undefined;
      if (lost !== undefined) settled.delete(lost);
    }
    for (const { lease } of settlements) {
      this.#held.remove(lease);
      this.#unheard.over(lease.fence);
    }
    this.#vacuum.note(settled.size);
    for (const { input, resolve } of calls)
      resolve(input.map((settlement): SettleResult => (settled.has(settlement) ? "settled" : "lost")));
  }

  /** What a look tells the next one. */
  #learn(claims: QueueClaims, claim: WaitingClaim | undefined, grants: readonly Grant[], rows: readonly Row[]): void {
    this.#dueIn(claims.learn(rows.filter((row) => integer(row, 0) === LEARNT)));
    const isWhole = grants.length >= (claim?.request.max ?? 0) || !claims.lookBack();
    if (grants.length === 0 && !isWhole) claims.look = true;
  }

  #answerClaims(
    claims: QueueClaims,
    claim: WaitingClaim | undefined,
    grants: readonly Grant[],
    saidAsleep: boolean,
  ): void {
    if (this.#closed) claims.ahead.giveBack();
    if (claim !== undefined && grants.length > 0) this.#answer(claims, claim, grants.slice(0, claim.request.max));
    else if (claim !== undefined && (claim.request.signal.aborted || this.#closed)) {
      claims.remove(claim);
      claim.resolve([]);
    }
    // Who came while this was under way, or found nothing while another step did.
    for (const other of claims.all()) {
      const kept = other.looking && other !== claim ? [] : claims.ahead.take(other.request);
      if (kept.length > 0) this.#answer(claims, other, kept);
    }
    // What came between the look and the word that somebody sleeps was told to nobody: look once more.
    if (grants.length > 0 || !saidAsleep) return;
    claims.asleep = true;
    claims.look = true;
  }

  #answer(claims: QueueClaims, claim: WaitingClaim, grants: readonly Grant[]): void {
    claims.remove(claim);
    claim.resolve(this.#handOut(claims, claim.request, grants));
  }

  #handOut(claims: QueueClaims, { lost }: ClaimRequest, grants: readonly Grant[]): readonly Grant[] {
    for (const { lease } of grants) this.#held.add(lease, lost);
    claims.ahead.gave(grants);
    return grants;
  }

  /** Nobody came for these, or nobody should start them any more. Nobody else would give them back before they run out. */
  async #giveBack(leases: readonly Lease[]): Promise<void> {
    for (;;) {
      try {
        await this.lane.settle(leases.map((lease) => ({ lease, ending: { type: "release" } })));
        return;
      } catch {
        if (this.#closed) return;
        await pause(this.#parts.clock, GIVE_BACK_AGAIN_MS);
      }
    }
  }

  /** What is kept for a worker of the queue is not handed out any more. */
  giveBackAhead(queue: number): void {
    this.#claims.get(queue)?.ahead.giveBack();
  }

  /** Whoever waits should know why nothing comes; they ask again. */
  #failClaims(claims: QueueClaims, error: unknown): void {
    claims.asleep = false;
    for (const claim of claims.all()) {
      claims.remove(claim);
      claim.reject(error);
    }
  }

  /** What was submitted in transactions that have been committed since is counted in, and takes its place if it is due. */
  async countIn(): Promise<void> {
    const { link, schema, me } = this.#parts;
    for (;;) {
      const rows = await link.query("baton_count_in", `SELECT * FROM ${schema}.count_in($1)`, [me]);
      if (rows.length === 0) return;
      for (const row of rows) {
        this.changed(integer(row, 0), flag(row, 1));
        this.ended(integer(row, 0), false);
      }
    }
  }

  /** What carries signals in place of NOTIFY. */
  async wakeFinding(): Promise<Finding | undefined> {
    return await this.#parts.wake?.check();
  }

  /** What is due; holds; outcomes; and the word that somebody still sleeps. */
  async #serveOthers(): Promise<void> {
    if (this.#due) await this.#sweep();
    if (this.#sayAsleep) await this.#saySoAgain();
    for (const hold of this.#holds.givenUp.splice(0)) await this.#giveUpMark(hold.queue, hold.request);
    for (const hold of this.#holds.waiting) if (hold.look) await this.#tryHold(hold);
    for (const [queue, outcomes] of this.#outcomes) if (outcomes.look) await this.#tellOutcomes(queue, outcomes);
    if (!this.#closed) await this.#forgetting.forgetNowAndThen();
  }

  async #sweep(): Promise<void> {
    const { link, schema, me } = this.#parts;
    this.#due = false;
    try {
      for (const name of ["sweep_delayed", "sweep_timers"]) {
        const rows = await link.query(`baton_${name}`, `SELECT * FROM ${schema}.${name}($1)`, [me]);
        for (const row of rows) {
          this.changed(integer(row, 0), flag(row, 1));
          this.ended(integer(row, 0), false);
          this.#holds.lookAt(integer(row, 0));
        }
      }
      await this.#askWhatIsDue();
    } catch {
      // Whoever waits hears of it from his own look.
      this.#dueIn(DEAF_LOOK_EVERY_MS);
      for (const claims of this.#claims.values()) claims.look = claims.size > 0;
    }
  }

  #shouldAskWhatIsDue(): boolean {
    const now = this.#parts.clock.monotonic();
    if (now - this.#askedWhatIsDueAt < ASK_WHAT_IS_DUE_MS) return false;
    this.#askedWhatIsDueAt = now;
    return true;
  }

  async #askWhatIsDue(): Promise<void> {
    const { link, schema } = this.#parts;
    const [row] = await link.query("baton_due_in", `SELECT ${schema}.due_in()`, []);
    this.#dueIn(row === undefined ? -1 : integer(row, 0));
  }

  async #saySoAgain(): Promise<void> {
    this.#sayAsleep = false;
    try {
      for (const [id, { asleep, size }] of this.#claims) if (asleep && size > 0) await this.#sleep(id, 0, true);
      for (const [id, { size }] of this.#outcomes) if (size > 0) await this.#sleep(id, 1, true);
      if (this.#cellWatchers.size > 0) await this.#sleep(0, 2, true);
      await this.#askWhatIsDue();
    } catch {
      // They look soon, and hear of it then.
    }
  }

  async #tryHold(hold: WaitingHold): Promise<void> {
    hold.look = false;
    hold.trying = true;
    try {
      const lease = await this.#holds.try(hold.queue, hold.request, true);
      if (lease !== undefined) {
        this.#took(lease, hold.request);
        this.#holds.waiting.delete(hold);
        hold.resolve(lease);
      } else if (hold.request.signal.aborted || this.#closed) {
        this.#holds.waiting.delete(hold);
        await this.#giveUpMark(hold.queue, hold.request);
        hold.resolve(undefined);
      } else await this.#askWhatIsDue();
    } catch (error) {
      this.#holds.waiting.delete(hold);
      hold.reject(error);
    } finally {
      hold.trying = false;
    }
  }

  #took(lease: Lease, { lost }: HoldRequest): void {
    this.#unheard.heard(lease);
    this.#held.add(lease, lost);
  }

  /** A mark that cannot be removed now costs its key a moment, once. */
  async #giveUpMark(queue: DeclaredQueue, request: HoldRequest): Promise<void> {
    try {
      const hold = { queue, request };
      if (await this.#holds.wantNoMore(hold)) this.changed(queue.id, false);
      else this.#lookFor(queue.id);
    } catch {
      // The key is free again by itself.
    }
  }

  async #tellOutcomes(queue: number, outcomes: QueueOutcomes): Promise<void> {
    outcomes.look = false;
    const declared = this.queues.byId(queue);
    const ids = outcomes.ids();
    if (ids.length === 0 || declared === undefined) return;
    try {
      outcomes.tell(ids, await this.inspection.outcomes(declared, ids));
      if (outcomes.size === 0) await this.#sleep(queue, 1, false);
    } catch (error) {
      outcomes.fail(error);
    }
  }

  /** Nothing is left to do: those who went to sleep unseen are told now. */
  async rest(): Promise<void> {
    const { link, schema, me } = this.#parts;
    try {
      if (this.#rings.areThere)
        await link.query("baton_ring", `SELECT ${schema}.ring($1, $2, $3)`, [me, ...this.#rings.take()]);
    } catch {
      // They look by themselves now and then.
    }
    if (!this.#closed) await this.#forgetting.forgetNowAndThen();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#dueTimer?.cancel();
    this.#lookTimer?.cancel();
    for (const claims of this.#claims.values()) {
      claims.ahead.giveBack();
      for (const claim of claims.all()) {
        if (claim.looking) continue;
        claims.remove(claim);
        claim.resolve([]);
      }
    }
    for (const hold of this.#holds.waiting) {
      if (hold.trying) continue;
      this.#holds.waiting.delete(hold);
      this.#holds.givenUp.push(hold);
      hold.resolve(undefined);
    }
    for (const outcomes of this.#outcomes.values()) outcomes.end();
    this.#submitter.close();
    await this.#unheard.close();
    this.lane.nudge();
    await this.lane.quiet();
    this.#bell.close();
    await this.#foreign?.close();
    await this.#vacuum.close();
    this.#parts.link.close();
    this.#parts.beside?.close();
    await this.#parts.connections.close();
  }

  #hear(signal: Signal): void {
    const { me } = this.#parts;
    switch (signal.type) {
      case "work":
        if (signal.handles === undefined || signal.handles.includes(me))
          this.#lookFor(signal.queue, signal.handles === undefined, signal.many);
        break;
      case "outcomes": {
        const outcomes = this.#outcomes.get(signal.queue);
        if (outcomes !== undefined) outcomes.look = true;
        break;
      }
      case "hold":
        this.#holds.lookAt(signal.queue);
        break;
      case "lost":
        if (signal.handle !== me) return;
        this.#unheard.over(signal.fence);
        this.#held.loseFence(signal.fence);
        return;
      case "cell":
        for (const changed of this.#cellWatchers) changed(signal.name);
        return;
    }
    if (this.hasWaiting && !this.#closed) this.lane.nudge();
  }

  /** `swept`: what was submitted in a transaction has yet to arrive. */
  #lookFor(queue: number, sweepFirst = false, many = Infinity): void {
    const claims = this.#claims.get(queue);
    if (claims === undefined || claims.size === 0) return;
    claims.expect(many);
    if (sweepFirst) this.#due = true;
  }

  #lookEverywhere(): void {
    for (const changed of this.#cellWatchers) changed(undefined);
    this.#sayAsleep = this.#cellWatchers.size > 0;
    for (const claims of this.#claims.values()) {
      claims.look = claims.size > 0;
      this.#sayAsleep ||= claims.size > 0;
    }
    for (const outcomes of this.#outcomes.values()) {
      outcomes.look = outcomes.size > 0;
      this.#sayAsleep ||= outcomes.size > 0;
    }
    this.#holds.lookAt();
    if (this.hasWaiting && !this.#closed) this.lane.nudge();
  }

  /** While anybody waits, everything is looked at now and then. */
  #watch(): void {
    if (this.#lookTimer !== undefined || this.#closed) return;
    this.#lookTimer = this.#parts.clock.setTimer(this.#bell.isDeaf ? DEAF_LOOK_EVERY_MS : LOOK_EVERY_MS, () => {
      this.#lookTimer = undefined;
      this.#lookEverywhere();
      if (this.#anybodyWaits()) this.#watch();
    });
  }

  #anybodyWaits(): boolean {
    if (this.#holds.waiting.size > 0 || this.#cellWatchers.size > 0) return true;
    for (const { size } of this.#claims.values()) if (size > 0) return true;
    for (const { size } of this.#outcomes.values()) if (size > 0) return true;
    return false;
  }

  #dueIn(ms: number): void {
    if (ms < 0 || this.#closed) return;
    this.#dueTimer?.cancel();
    this.#dueTimer = this.#parts.clock.setTimer(Math.max(ms, DUE_AGAIN_MS), () => {
      this.#dueTimer = undefined;
      this.#due = true;
      this.lane.nudge();
    });
  }

  async #sleep(queue: number, what: number, waits: boolean): Promise<void> {
    const { link, schema, me } = this.#parts;
    await link.query("baton_sleep", `SELECT ${schema}.sleep($1, $2, $3, $4)`, [me, queue, what, waits]);
  }

  #claimsOf(queue: DeclaredQueue): QueueClaims {
    let claims = this.#claims.get(queue.id);
    if (claims === undefined) {
      claims = new QueueClaims(queue, this.#parts.clock, (leases) => void this.#giveBack(leases));
      this.#claims.set(queue.id, claims);
    }
    return claims;
  }
}

const NO_CLAIM: readonly unknown[] = [null, null, 0, 0, 0, 0, null, false, false];
