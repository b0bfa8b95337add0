import { type Clock, pause } from "../../domain/clock.ts";
import type { ClaimRequest, Grant, Lease, Settlement, SettleResult } from "../../engine/port.ts";
import { HeldLeases } from "../../engine/held-leases.ts";
import { Answers } from "./answers.ts";
import { QueueClaims, type WaitingClaim } from "./claims.ts";
import type { Given } from "./grants.ts";
import type { Lane } from "./lane.ts";
import type { Link } from "./link.ts";
import type { DeclaredQueue, Queues } from "./queues.ts";
import { asksForRuns, RUN_AHEAD_MS, SHARE_OF_LEASE } from "./run-ahead.ts";
import { Train } from "./train.ts";
import type { Trains } from "./trains.ts";
import { Unheard } from "./unheard.ts";

/** What could not be given back is given back again after so long: the server is away, or a connection was lost. */
const GIVE_BACK_AGAIN_MS = 100;

export interface LeasesParts {
  readonly link: Link;
  readonly clock: Clock;
  readonly schema: string;
  readonly me: number;
  readonly queues: Queues;
  readonly lane: Lane;
  /** There is the first lease whose holder wants to hear that it is lost, or none is left. */
  readonly held: (some: boolean) => void;
}

/** The leases of this handle: who waits for some, who has which, and how they end. */
export class Leases {
  readonly #parts: LeasesParts;
  /** By the number of the queue. */
  readonly claims: Map<number, QueueClaims> = new Map();
  readonly unheard: Unheard;
  readonly #held: HeldLeases;
  #closed = false;

  constructor(parts: LeasesParts) {
    this.#parts = parts;
    this.#held = new HeldLeases(parts.held);
    this.unheard = new Unheard({
      ...parts,
      runs: (queue, key, fence) => this.claims.get(queue)?.trains.get(key)?.has(fence) === true,
      alone: (run) => parts.lane.call(run),
      giveBack: (leases) => this.#giveBack(leases),
    });
  }

  claimsOf(queue: DeclaredQueue): QueueClaims {
    let claims = this.claims.get(queue.id);
    if (claims === undefined) {
      claims = new QueueClaims(queue, this.#parts.clock, (leases) => void this.#giveBack(leases));
      this.claims.set(queue.id, claims);
    }
    return claims;
  }

  trainsOf(queue: string): Trains | undefined {
    return this.claims.get(this.#parts.queues.known(queue).id)?.trains;
  }

  /** All that may have begun something of which the store does not know. */
  trains(): readonly Train[] {
    return [...this.claims.values()].flatMap(({ trains }) => trains.all());
  }

  /** The fences by which the store may know a lease. */
  fencesOf(lease: Lease): readonly number[] {
    return this.trainsOf(lease.queue)?.of(lease)?.fences ?? [lease.fence];
  }

  /** Whoever waits gets what may begin after what was done, and then what is kept. */
  serve(claims: QueueClaims): void {
    if (claims.size === 0) return;
    for (const claim of claims.all()) {
      const { request } = claim;
      if (request.signal.aborted || asksForRuns(request)) continue;
      const grants = claims.trains.take(request, request.max, this.#parts.clock.monotonic());
      for (const { lease } of grants) this.#held.add(lease, request.lost);
      const kept = claims.ahead.take(request, request.max - grants.length);
      if (grants.length > 0) claims.ahead.gave(grants[0]);
      if (grants.length + kept.length > 0) {
        claims.remove(claim);
        claim.resolve([...grants, ...this.#handOut(claims, request, kept)]);
      }
    }
  }

  /** What a step found for one who waits. */
  answer(claims: QueueClaims, claim: WaitingClaim, given: readonly Given[]): void {
    claims.remove(claim);
    claim.resolve(this.#handOut(claims, claim.request, given));
  }

  #handOut(claims: QueueClaims, request: ClaimRequest, given: readonly Given[]): readonly Grant[] {
    for (const { grant, cars } of given) {
      this.#held.add(grant.lease, request.lost);
      if (cars === undefined) continue;
      const aheadMs = Math.min(RUN_AHEAD_MS, request.leaseMs / SHARE_OF_LEASE);
      claims.trains.begin(new Train(cars, request, grant.lease.since.monotonic + aheadMs));
      // From now on the train knows by which fences the store may know the lease.
      this.unheard.over(grant.lease.fence);
    }
    if (!asksForRuns(request)) claims.ahead.gave(given[0]?.grant);
    return given.map(({ grant }) => grant);
  }

  /** A hold. */
  took(lease: Lease, lost: ClaimRequest["lost"]): void {
    this.unheard.heard(lease);
    this.#held.add(lease, lost);
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    if (settlements.length === 0) return Promise.resolve([]);
    for (const { ahead } of this.claims.values()) ahead.end(settlements);
    const trains = settlements.map(({ lease }) => this.trainsOf(lease.queue)?.of(lease));
    const heard = settlements.map(({ lease }) => this.trainsOf(lease.queue)?.hear(lease));
    if (trains.every((train) => train === undefined) && heard.every((result) => result === undefined))
      return this.#parts.lane.settle(settlements);
    return this.#settleWithTrains(settlements, trains, heard);
  }

  /** Some of what ends was begun before the store knew of it. */
  async #settleWithTrains(
    settlements: readonly Settlement[],
    trains: readonly (Train | undefined)[],
    heard: readonly (SettleResult | undefined)[],
  ): Promise<readonly SettleResult[]> {
    const answers = new Answers(settlements.length);
    const now = this.#parts.clock.monotonic();
    const plain: Settlement[] = [];
    const places: number[] = [];
    const news: Train[] = [];
    for (const [index, settlement] of settlements.entries()) {
      const train = trains[index];
      const result = heard[index];
      if (result !== undefined) answers.answer(index, result);
      else if (train === undefined) {
        plain.push(settlement);
        places.push(index);
      } else {
        this.#held.remove(settlement.lease);
        train.end(settlement, answers, index, now);
        if (train.offered(now) !== undefined) this.trainsOf(train.queue)?.offer(train);
        if (!train.isReporting) news.push(train);
        train.isReporting = true;
      }
    }
    if (plain.length + news.length > 0) {
      this.#parts.lane.settle([...plain, ...news]).then(
        (results) => places.forEach((place, index) => answers.answer(place, results[index] ?? "lost")),
        // The others hear of it from their trains.
        (error: unknown) => (places.length > 0 ? answers.fail(error) : undefined),
      );
    }
    for (const claims of this.claims.values()) this.serve(claims);
    return await answers.all;
  }

  /** It was settled, or its holder was told that it is lost. */
  over(lease: Lease): void {
    this.#held.remove(lease);
    this.unheard.over(lease.fence);
  }

  /** The key of a train is somebody else's. */
  loseTrain(train: Train): void {
    const lease = this.trainsOf(train.queue)?.lost(train);
    if (lease !== undefined) this.#held.lose(lease);
  }

  /** The store says so, of a lease that it knows by this fence. */
  lose(fence: number): void {
    for (const train of this.trains()) if (train.has(fence)) this.loseTrain(train);
    this.unheard.over(fence);
    const lease = this.#held.withFence(fence);
    if (lease !== undefined) this.#held.lose(lease);
  }

  /** Something else than the store says so: whoever has it asks. */
  doubt(fence: number): void {
    const trains = this.trains().filter((train) => train.has(fence));
    const doubted = [this.#held.withFence(fence), ...trains.map(({ running }) => running)];
    for (const lease of new Set(doubted)) if (lease !== undefined) this.#held.doubt(lease);
  }

  /** The store refused to renew it, under all fences by which it may know it. */
  refused(lease: Lease): void {
    this.over(lease);
    const train = this.trainsOf(lease.queue)?.of(lease);
    if (train !== undefined) this.loseTrain(train);
  }

  /** Nothing begins in the queue any more of what this handle has and has not begun. */
  stop(queue: number): void {
    const claims = this.claims.get(queue);
    claims?.ahead.giveBack();
    claims?.trains.stop();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  close(): void {
    this.#closed = true;
    for (const [queue, claims] of this.claims) {
      this.stop(queue);
      for (const claim of claims.all()) {
        if (claim.looking) continue;
        claims.remove(claim);
        claim.resolve([]);
      }
    }
  }

  /** Nobody came for these, or nobody should start them any more. Nobody else would give them back before they run out. */
  async #giveBack(leases: readonly Lease[]): Promise<void> {
    for (;;) {
      try {
        await this.#parts.lane.settle(leases.map((lease) => ({ lease, ending: { type: "release" } })));
        return;
      } catch {
        if (this.#closed) return;
        await pause(this.#parts.clock, GIVE_BACK_AGAIN_MS);
      }
    }
  }
}
