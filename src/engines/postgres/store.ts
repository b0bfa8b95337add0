import type { Clock, Timer } from "../../domain/clock.ts";
import { Closed } from "../../domain/errors.ts";
import type { ClaimRequest, Finding, Grant, HoldRequest, Lease, Outcome, OutcomeRequest } from "../../engine/port.ts";
import type { Wake } from "../../wake/wake.ts";
import { Due } from "./due.ts";
import { ForeignBell } from "./foreign-bell.ts";
import type { ServingHandle } from "./serving.ts";
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
import { readSignal, type Signal } from "./signals.ts";
import { Submitter } from "./submitter.ts";
import { Vacuum } from "./vacuum.ts";
import { PostgresWake } from "./wake.ts";

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
  readonly beside: Link | undefined;
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
export class Store implements LaneWork, ServingHandle {
  readonly #parts: StoreParts;
  readonly link: Link;
  readonly clock: Clock;
  readonly me: number;
  readonly queues: Queues;
  readonly lane: Lane;
  readonly inspection: Inspection;
  readonly leases: Leases;
  readonly due: Due;
  readonly #steps: Steps;
  /** Listens on a connection that does nothing else, so that nobody is kept waiting by what another hears. */
  readonly #bell: PostgresWake;
  readonly #foreign: ForeignBell | undefined = undefined;
  readonly #holds: Holds;
  readonly #outcomes: Outcomes;
  readonly #vacuum: Vacuum;
  readonly #submitter: Submitter;
  readonly rings: Rings = new Rings();
  readonly #cellWatchers = new Set<(name: string | undefined) => void>();
  #lookTimer: Timer | undefined;
  /** By the monotonic clock. */
  #lookAt = Infinity;
  /** For work, by the monotonic clock. */
  #lookedAt: number;
  #sayAsleep = false;
  #closed = false;

  constructor(given: StoreParts) {
    const { link, connections, clock, me } = given;
    const { schema } = link;
    this.#parts = given;
    this.link = link;
    this.clock = clock;
    this.me = me;
    this.#lookedAt = clock.monotonic();
    this.queues = new Queues(link);
    this.lane = new Lane(this);
    this.inspection = new Inspection(link);
    this.#vacuum = new Vacuum(connections, clock, schema);
    this.leases = new Leases(this, (some) => this.#foreign?.hold(some));
    this.due = new Due(this, {
      swept: (queue) => this.#holds.waiting.lookAt(queue),
      failed: () => this.#lookForWork(),
    });
    this.#steps = new Steps(this, given.beside, this.#vacuum);
    this.#holds = new Holds(this);
    this.#outcomes = new Outcomes(this);
    this.#submitter = new Submitter(this);
    for (const way of [link, given.beside]) {
      if (way === undefined) continue;
      way.onUnknown = () => this.leases.unheard.suspect();
      way.onQueueGone = (queue) => this.queues.miss(queue);
    }
    this.#bell = new PostgresWake(connections);
    if (given.wake === undefined) return;
    this.#foreign = new ForeignBell(this, given.wake, (signal) => this.#hear(signal));
    given.wake.onHearing(() => this.#hearingChanged());
  }

  /** That nothing can be done is said by the calls that try. */
  async listen(): Promise<void> {
    const heard = (payload: string): void => {
      const signal = readSignal(payload);
      if (signal !== undefined) this.#hear(signal);
    };
    await this.#bell.keepListening(channelOf(this.link.schema), { heard, missed: () => this.#lookEverywhere() });
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  assertOpen(): void {
    if (this.#closed) throw new Closed();
  }

  async call<T>(run: () => Promise<T>): Promise<T> {
    this.assertOpen();
    return await this.lane.call(run);
  }

  async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const queue = this.queues.get(request.queue);
    if (request.signal.aborted) return [];
    const grants = await this.#while(queue, () => {
      const waiting = this.leases.claimsOf(queue).wait(request);
      this.waits();
      this.lane.nudge();
      return waiting;
    });
    if (grants.length > 0) this.#leased(queue, request.leaseMs);
    return grants;
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
    if (!rung) this.rings.addWork(queue);
  }

  /** Whoever waits here looks, and learns of it. */
  deleted(queue: number): void {
    this.#lookFor(queue);
    this.#outcomes.waiting.lookAt(queue);
    this.#holds.waiting.lookAt(queue);
    this.queues.miss(queue);
    this.lane.nudge();
  }

  ended(queue: number, rung: boolean): void {
    this.#outcomes.waiting.lookAt(queue);
    if (!rung) this.rings.addOutcomes(queue);
  }

  /** Calls back with the names of cells that changed, and with nothing when any may have. */
  watchCells(changed: (name: string | undefined) => void): void {
    this.#cellWatchers.add(changed);
    this.waits();
  }

  async sayThatCellsAreWatched(): Promise<void> {
    await this.lane.call(() => this.#sleep(0, 2, true));
  }

  get hasWaiting(): boolean {
    if (this.due.isNow || this.#sayAsleep || this.#holds.waiting.hasWork || this.#outcomes.waiting.hasWork) return true;
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
    await this.due.forgetNowAndThen();
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
      if (this.rings.areThere) await link.call("ring", me, ...this.rings.take());
    } catch {
      // They look by themselves now and then.
    }
    await this.due.forgetNowAndThen();
  }

  /** @param late what is not done by then is cut off */
  async close(late: Promise<unknown>): Promise<void> {
    const { link, beside } = this.#parts;
    this.#closed = true;
    this.#lookTimer?.cancel();
    this.due.close();
    this.#steps.close();
    this.leases.close();
    this.#holds.waiting.close();
    this.#outcomes.waiting.close();
    this.#submitter.close();
    await Promise.race([this.#finish(), late]);
    void this.#bell.close();
    this.#vacuum.cutOff();
    link.close();
    beside?.close();
  }

  async #finish(): Promise<void> {
    await this.leases.unheard.close();
    this.lane.nudge();
    await this.lane.quiet();
    void this.#bell.close();
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
        this.#outcomes.waiting.lookAt(signal.queue);
        break;
      case "hold":
        this.#holds.waiting.lookAt(signal.queue);
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
    this.#outcomes.waiting.lookAt();
    this.#sayAsleep = this.#cellWatchers.size > 0 || this.#areClaimsWaiting() || this.#outcomes.waiting.size > 0;
    this.#holds.waiting.lookAt();
    if (this.hasWaiting && !this.#closed) this.lane.nudge();
  }

  /** While anybody waits, everything is looked at now and then. */
  waits(): void {
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
      if (this.#sayAsleep || this.#holds.waiting.size > 0) this.waits();
    });
  }

  #lookEveryMs(): number {
    if (this.#bell.isDeaf) return DEAF_LOOK_EVERY_MS;
    // Locks are told by NOTIFY, and whoever waits to hold a key has to know when its lease runs out.
    if (this.#holds.waiting.size > 0 || this.#cellWatchers.size > 0) return LOOK_EVERY_MS;
    return this.#foreign?.hears === true ? FOREIGN_LOOK_EVERY_MS : LOOK_EVERY_MS;
  }

  /** Whoever hears nothing any more looks at once, and as often as without a carrier; when it hears again, everybody is told to look. */
  #hearingChanged(): void {
    if (this.#closed || this.#foreign?.hears === true) return;
    this.#lookEverywhere();
    if (this.#sayAsleep || this.#holds.waiting.size > 0) this.waits();
  }

  #areClaimsWaiting(): boolean {
    for (const { size } of this.leases.claims.values()) if (size > 0) return true;
    return false;
  }

  async #sleep(queue: number, what: number, waits: boolean): Promise<void> {
    await this.#parts.link.call("sleep", this.#parts.me, queue, what, waits);
  }
}
