import { pause } from "../../domain/clock.ts";
import type { ClaimRequest, Grant, Lease } from "../../engine/port.ts";
import { HeldLeases } from "../../engine/held-leases.ts";
import { QueueClaims, type WaitingClaim } from "./claims.ts";
import type { Handle } from "./handle.ts";
import type { DeclaredQueue } from "./queues.ts";
import { Unheard } from "./unheard.ts";

/** What could not be given back is given back again after so long: the server is away, or a connection was lost. */
const GIVE_BACK_AGAIN_MS = 100;

/** The leases of this handle: who waits for some, who has which, and how they end. */
export class Leases {
  readonly #handle: Handle;
  /** By the number of the queue. */
  readonly claims: Map<number, QueueClaims> = new Map();
  readonly unheard: Unheard;
  readonly #held: HeldLeases;
  #closed = false;

  /** @param held called when there is the first lease whose holder wants to hear that it is lost, and when none is left */
  constructor(handle: Handle, held: (some: boolean) => void) {
    this.#handle = handle;
    this.#held = new HeldLeases(held);
    this.unheard = new Unheard(handle, (leases) => this.#giveBack(leases));
  }

  claimsOf(queue: DeclaredQueue): QueueClaims {
    let claims = this.claims.get(queue.id);
    if (claims === undefined) {
      claims = new QueueClaims(queue, this.#handle.clock);
      this.claims.set(queue.id, claims);
    }
    return claims;
  }

  /** What a step found for one who waits. */
  answer({ request, answer }: WaitingClaim, grants: readonly Grant[]): void {
    for (const { lease } of grants) this.took(lease, request.lost);
    answer(grants);
  }

  /** Somebody here has it now. */
  took(lease: Lease, lost: ClaimRequest["lost"]): void {
    this.unheard.heard(lease);
    this.#held.add(lease, lost);
  }

  /** It was settled, or its holder was told that it is lost. */
  over(lease: Lease): void {
    this.#held.remove(lease);
    this.unheard.over(lease.fence);
  }

  /** The store says so, of a lease that it knows by this fence. */
  lose(fence: number): void {
    this.unheard.over(fence);
    const lease = this.#held.withFence(fence);
    if (lease !== undefined) this.#held.lose(lease);
  }

  /** Something else than the store says so: whoever has it asks. */
  doubt(fence: number): void {
    const lease = this.#held.withFence(fence);
    if (lease !== undefined) this.#held.doubt(lease);
  }

  close(): void {
    this.#closed = true;
    for (const claims of this.claims.values()) claims.close();
  }

  /** Nobody heard of these, and nobody else would give them back before they run out. */
  async #giveBack(leases: readonly Lease[]): Promise<void> {
    for (;;) {
      try {
        await this.#handle.lane.settle(leases.map((lease) => ({ lease, ending: { type: "release" } })));
        return;
      } catch {
        if (this.#closed) return;
        await pause(this.#handle.clock, GIVE_BACK_AGAIN_MS);
      }
    }
  }
}
