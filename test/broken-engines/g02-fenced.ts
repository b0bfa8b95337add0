import type { ClaimRequest, Grant, Lease, Settlement, SettleResult } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Finds the lease to settle by its key alone, as a store does that compares only the id of a job. */
class SettlesByKey extends PassThrough {
  readonly #current = new Map<string, Lease>();

  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    for (const { lease } of grants) this.#current.set(nameOf(lease), lease);
    return grants;
  }

  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return super.settle(
      settlements.map((one) => Object.assign({}, one, { lease: this.#current.get(nameOf(one.lease)) ?? one.lease })),
    );
  }
}

/** Lets workers go on with what others have taken over, until they ask. */
class KeepsLossesToItself extends PassThrough {
  override claim({ lost: _, ...request }: ClaimRequest): Promise<readonly Grant[]> {
    return super.claim(request);
  }
}

function nameOf({ queue, key }: Lease): string {
  return JSON.stringify([queue, key]);
}

export const settlesByKey: BrokenEngine = brokenEngine(
  "G2",
  "settles whatever lease the key has",
  () => (inner) => new SettlesByKey(inner),
);

export const keepsLossesToItself: BrokenEngine = brokenEngine(
  "G2",
  "tells nobody that a lease went to somebody else",
  () => (inner) => new KeepsLossesToItself(inner),
);
