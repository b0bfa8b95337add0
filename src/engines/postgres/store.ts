import type { Clock, Timer } from "../../domain/clock.ts";
import { Closed } from "../../domain/errors.ts";
import type { ClaimRequest, Finding, Grant, HoldRequest, Lease, Outcome, OutcomeRequest } from "../../engine/port.ts";
import type { Wake } from "../../wake/wake.ts";
import { answered } from "./answered.ts";
import type { Beside } from "./beside.ts";
import { Bell, type Signal } from "./bell.ts";
import type { QueueClaims, WaitingClaim } from "./claims.ts";
import { Due } from "./due.ts";
import { ForeignBell } from "./foreign-bell.ts";
import { Forgetting } from "./forgetting.ts";
import type { Handle } from "./handle.ts";
import { Holds } from "./holds.ts";
import { Inspection } from "./inspect.ts";
import { Lane, type LaneWork, type SettleCall, type SubmitCall } from "./lane.ts";
import { Leases } from "./leases.ts";
import type { Connections, Link } from "./link.ts";
import { Outcomes } from "./outcomes.ts";
import { type DeclaredQueue, Queues } from "./queues.ts";
import { Rings } from "./rings.ts";
import { channelOf } from "./schema.ts";
import { Steps } from "./steps.ts";
import { Submitter } from "./submitter.ts";
import { Vacuum } from "./vacuum.ts";

/** Whoever waits looks by himself this often: a wake may be lost. */
const LOOK_EVERY_MS = 2_000;
/**
 * And this often where something else carries the wakes, and is heard: hints are there so that few ask. A lease that others have taken since the last
 * look is then seen before it runs out, if it is as long as that; of shorter ones somebody is told.
 */
const FOREIGN_LOOK_EVERY_MS = 30_000;
/** And this often while nothing can be heard. */
const DEAF_LOOK_EVERY_MS = 250;

export interface StoreParts {
  readonly link: Link;
  /** Where there may be another connection. */
  readonly beside: Beside | undefined;
  readonly connections: Connections;
  readonly clock: Clock;
  /** The number of this handle, by which others tell it things. */
  readonly me: number;
  /** Carries signals about queues in place of NOTIFY. */
  readonly wake: Wake | undefined;
}

/**
 * The store as one handle sees it: a lane of calls (`lane.ts`), those who wait, and what wakes them. Somebody who waits is served by the
 * next step of the lane; whatever may have changed something for him (`look`) is a call of this handle, a signal of another, or the time.
 * What a step is, is in `steps.ts`; which leases there are, in `leases.ts`; and what time brings, in `due.ts`.
 */
export class Store implements LaneWork {
  readonly #parts: StoreParts;
  readonly queues: Queues;
  readonly lane: Lane;
  readonly inspection: Inspection;
  readonly leases: Leases;
  readonly due: Due;
  readonly #steps: Steps;
  readonly #bell: Bell;
  readonly #foreign: ForeignBell | undefined;
  readonly #holds: Holds;
  readonly #outcomes: Outcomes;
  readonly #vacuum: Vacuum;
  readonly #submitter: Submitter;
  readonly #forgetting: Forgetting;
  readonly #rings = new Rings();
  readonly #cellWatchers = new Set<(name: string | undefined) => void>();
  #lookTimer: Timer | undefined;
  /** By the monotonic clock. */
  #lookAt = Infinity;
  /** For work, by the monotonic clock. */
  #lookedAt: number;
  #sayAsleep = false;
  #closed = false;

  constructor(given: StoreParts) {
    const { link, connections, clock } = given;
    const { schema } = link;
    this.#parts = given;
    this.#lookedAt = clock.monotonic();
    this.queues = new Queues(link);
    this.lane = new Lane(this);
    this.inspection = new Inspection(link);
    this.#vacuum = new Vacuum(connections, clock, schema);
    this.#forgetting = new Forgetting(link, clock);
    const handle: Handle = {
      ...given,
      queues: this.queues,
      lane: this.lane,
      rings: this.#rings,
      changed: (queue, rung) => this.changed(queue, rung),
      ended: (queue, rung) => this.ended(queue, rung),
      waits: () => this.#watch(),
    };
    this.leases = new Leases(handle, (some) => this.#foreign?.hold(some));
    this.due = new Due(handle, {
      swept: (queue) => this.#holds.lookAt(queue),
      failed: () => this.#lookForWork(),
    });
    const { leases, due } = this;
    this.#steps = new Steps(handle, given.beside, leases, { due, vacuum: this.#vacuum });
    this.#holds = new Holds(handle, leases, due);
    this.#outcomes = new Outcomes(handle, this.inspection);
    this.#submitter = new Submitter(handle, leases);
    for (const way of [link, given.beside?.link]) {
      if (way === undefined) continue;
      way.onUnknown = () => leases.unheard.suspect();
      way.onQueueGone = (queue) => this.queues.miss(queue);
    }
    this.#bell = new Bell(connections, clock, channelOf(schema), (signal) => this.#hear(signal));
    this.#foreign = given.wake === undefined ? undefined : this.#hearFrom(given.wake);
  }

  #hearFrom(wake: Wake): ForeignBell {
    const { link, clock, me } = this.#parts;
    const idle = (queue: number): number => this.leases.claims.get(queue)?.size ?? 0;
    const hear = (signal: Signal): void => this.#hear(signal);
    const doubt = (fence: number): void => this.leases.doubt(fence);
    const notify = async (payloads: readonly string[]): Promise<void> => {
      const text = "SELECT pg_notify($1, u.payload) FROM unnest($2::text[]) u(payload)";
      await link.query("baton_notify", text, [channelOf(link.schema), [...payloads]]);
    };
    const foreign = new ForeignBell({ wake, clock, queues: this.queues, me, idle, hear, doubt, notify });
    wake.onHearing(() => this.#hearingChanged());
    link.onNotice = (message) => foreign.note(message);
    link.onDone = () => foreign.tell();
    return foreign;
  }

  async listen(): Promise<void> {
    await this.#bell.listen(() => this.#lookEverywhere());
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  assertOpen(): void {
    if (this.#closed) throw new Closed();
  }

  async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const claims = this.leases.claimsOf(this.queues.get(request.queue));
    if (this.#foreign === undefined) return await this.#claim(claims, request);
    const grants = await this.#foreign.while(claims.queue, () => this.#claim(claims, request));
    if (grants.length > 0) this.#leased(claims.queue, request.leaseMs);
    return grants;
  }

  #claim(claims: QueueClaims, request: ClaimRequest): Promise<readonly Grant[]> {
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

  async hold(request: HoldRequest): Promise<Lease | undefined> {
    const queue = this.queues.get(request.queue);
    const lease = await this.#while(queue, () => this.#holds.hold(queue, request));
    if (lease !== undefined) this.#leased(queue, request.leaseMs);
    return lease;
  }

  async outcome(request: OutcomeRequest): Promise<Outcome | undefined> {
    const queue = this.queues.get(request.queue);
    return await this.#while(queue, () => this.#outcomes.outcome(queue, request));
  }

  /** Others, and those who wait here, should know when it runs out. */
  #leased(queue: DeclaredQueue, leaseMs: number): void {
    if (leaseMs >= FOREIGN_LOOK_EVERY_MS || this.#foreign?.leased(queue, leaseMs) !== true) return;
    if (!this.#areClaimsWaiting() || this.#closed) return;
    // If nobody can be asked now, they look by themselves.
    this.lane.call(() => this.due.ask()).catch(() => undefined);
  }

  #while<T>(queue: DeclaredQueue, waiting: () => Promise<T>): Promise<T> {
    return this.#foreign === undefined ? waiting() : this.#foreign.while(queue, waiting);
  }

  /** Something happened to a queue by a call of this handle; others were told, or not. */
  changed(queue: number, rung: boolean): void {
    this.#lookFor(queue);
    if (!rung) this.#rings.addWork(queue);
  }

  /** Whoever waits here looks, and learns of it. */
  deleted(queue: number): void {
    this.#lookFor(queue);
    this.#outcomes.lookAt(queue);
    this.#holds.lookAt(queue);
    this.queues.miss(queue);
    this.lane.nudge();
  }

  ended(queue: number, rung: boolean): void {
    this.#outcomes.lookAt(queue);
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
    if (this.due.isNow || this.#sayAsleep || this.#holds.hasWork || this.#outcomes.hasWork) return true;
    for (const { look, first } of this.leases.claims.values()) if (look && first !== undefined) return true;
    return false;
  }

  async submit(calls: readonly SubmitCall[]): Promise<void> {
    await this.#submitter.submit(calls);
  }

  async step(calls: readonly SettleCall[]): Promise<void> {
    await this.#steps.step(calls);
    await this.#serveOthers();
  }

  stepBeside(leases: number, take: () => readonly SettleCall[]): Promise<void> | undefined {
    return this.#steps.stepBeside(leases, take);
  }

  /** What carries signals in place of NOTIFY. */
  async wakeFinding(): Promise<Finding | undefined> {
    return await this.#parts.wake?.check();
  }

  /** What is due; holds; outcomes; and the word that somebody still sleeps. */
  async #serveOthers(): Promise<void> {
    if (this.due.isNow) await this.due.sweep();
    if (this.#sayAsleep) await this.#saySoAgain();
    await this.#holds.serve();
    await this.#outcomes.serve();
    if (!this.#closed) await this.#forgetting.forgetNowAndThen();
  }

  async #saySoAgain(): Promise<void> {
    this.#sayAsleep = false;
    try {
      for (const [id, { asleep, size }] of this.leases.claims) if (asleep && size > 0) await this.#sleep(id, 0, true);
      for (const id of this.#outcomes.waitingIn()) await this.#outcomes.say(id, true);
      if (this.#cellWatchers.size > 0) await this.#sleep(0, 2, true);
      await this.due.ask();
    } catch {
      // They look soon, and hear of it then.
    }
  }

  /** Nothing is left to do: those who went to sleep unseen are told now. */
  async rest(): Promise<void> {
    const { link, me } = this.#parts;
    try {
      if (this.#rings.areThere) await link.call("ring", me, ...this.#rings.take());
    } catch {
      // They look by themselves now and then.
    }
    if (!this.#closed) await this.#forgetting.forgetNowAndThen();
  }

  /** @param late what is not done by then is cut off */
  async close(late: Promise<unknown>): Promise<void> {
    const { link, beside, connections } = this.#parts;
    this.#closed = true;
    this.#lookTimer?.cancel();
    this.due.close();
    this.#steps.close();
    this.leases.close();
    this.#holds.close();
    this.#outcomes.close();
    this.#submitter.close();
    await Promise.race([this.#finish(), late]);
    this.#bell.close();
    this.#vacuum.cutOff();
    link.close();
    beside?.link.close();
    await connections.close();
  }

  async #finish(): Promise<void> {
    await this.leases.unheard.close();
    this.lane.nudge();
    await this.lane.quiet();
    this.#bell.close();
    await this.#foreign?.close();
    await this.#vacuum.close();
  }

  #hear(signal: Signal): void {
    const { me } = this.#parts;
    switch (signal.type) {
      case "work":
        if (signal.handles === undefined || signal.handles.includes(me))
          this.#lookFor(signal.queue, signal.handles === undefined, signal.many);
        break;
      case "outcomes":
        this.#outcomes.lookAt(signal.queue);
        break;
      case "hold":
        this.#holds.lookAt(signal.queue);
        break;
      case "lost":
        if (signal.handle === me) this.leases.lose(signal.fence);
        return;
      case "cell":
        for (const changed of this.#cellWatchers) changed(signal.name);
        return;
    }
    if (this.hasWaiting && !this.#closed) this.lane.nudge();
  }

  /** `sweepFirst`: what was submitted in a transaction has yet to arrive. */
  #lookFor(queue: number, sweepFirst = false, many = Infinity): void {
    const claims = this.leases.claims.get(queue);
    if (claims === undefined || claims.size === 0) return;
    claims.expect(many);
    if (sweepFirst) this.due.now();
  }

  #lookForWork(): void {
    this.#lookedAt = this.#parts.clock.monotonic();
    for (const claims of this.leases.claims.values()) claims.look = claims.size > 0;
  }

  #lookEverywhere(forWork = true): void {
    for (const changed of this.#cellWatchers) changed(undefined);
    if (forWork) this.#lookForWork();
    this.#outcomes.lookAt();
    this.#sayAsleep = this.#cellWatchers.size > 0 || this.#areClaimsWaiting() || this.#outcomes.waitingIn().length > 0;
    this.#holds.lookAt();
    if (this.hasWaiting && !this.#closed) this.lane.nudge();
  }

  /** While anybody waits, everything is looked at now and then. */
  #watch(): void {
    if (this.#closed) return;
    const { clock } = this.#parts;
    const everyMs = this.#lookEveryMs();
    const at = clock.monotonic() + everyMs;
    if (this.#lookTimer !== undefined && this.#lookAt <= at) return;
    this.#lookTimer?.cancel();
    this.#lookAt = at;
    this.#lookTimer = clock.setTimer(everyMs, () => {
      this.#lookTimer = undefined;
      const restMs = Math.max(everyMs, clock.monotonic() - this.#lookedAt);
      this.#lookEverywhere(this.#foreign?.hears !== true || restMs >= FOREIGN_LOOK_EVERY_MS);
      if (this.#sayAsleep || this.#holds.areWaiting) this.#watch();
    });
  }

  #lookEveryMs(): number {
    if (this.#bell.isDeaf) return DEAF_LOOK_EVERY_MS;
    // Locks are told by NOTIFY, and whoever waits to hold a key has to know when its lease runs out.
    if (this.#holds.areWaiting || this.#cellWatchers.size > 0) return LOOK_EVERY_MS;
    return this.#foreign?.hears === true ? FOREIGN_LOOK_EVERY_MS : LOOK_EVERY_MS;
  }

  /** Whoever hears nothing any more looks at once, and as often as without a carrier; when it hears again, everybody is told to look. */
  #hearingChanged(): void {
    if (this.#closed || this.#foreign?.hears === true) return;
    this.#lookEverywhere();
    if (this.#sayAsleep || this.#holds.areWaiting) this.#watch();
  }

  #areClaimsWaiting(): boolean {
    for (const { size } of this.leases.claims.values()) if (size > 0) return true;
    return false;
  }

  async #sleep(queue: number, what: number, waits: boolean): Promise<void> {
    await this.#parts.link.call("sleep", this.#parts.me, queue, what, waits);
  }
}
