import type { ClaimRequest, Grant, HoldRequest, Lease, Settlement, SettleResult } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Every third claim overlooks that a key is leased. */
class OverlooksLeases extends PassThrough {
  #claims = 0;
  readonly #live = new Map<number, Grant>();

  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    this.#claims += 1;
    const leased = [...this.#live.values()].find(({ lease }) => lease.queue === request.queue);
    if (this.#claims % 3 === 0 && leased !== undefined) return [leased];
    const grants = await super.claim(request);
    for (const grant of grants) this.#live.set(grant.lease.fence, grant);
    return grants;
  }

  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    for (const { lease } of settlements) this.#live.delete(lease.fence);
    return super.settle(settlements);
  }
}

/** A key in work can be held: the lock and the queue do not know of each other. */
class HoldsApart extends PassThrough {
  override hold(request: HoldRequest): Promise<Lease | undefined> {
    return super.hold({ ...request, key: `lock:${request.key}` });
  }
}

export const overlooksLeases: BrokenEngine = brokenEngine(
  "G1",
  "now and then overlooks a lease",
  () => (inner) => new OverlooksLeases(inner),
);
export const holdsApart: BrokenEngine = brokenEngine(
  "G1",
  "keeps holds apart from work",
  () => (inner) => new HoldsApart(inner),
);
