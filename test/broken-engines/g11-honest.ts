import type { ClaimRequest, Grant } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Drops grants that come when the claim was given up: leases that nobody has heard of. */
class LeaksLeases extends PassThrough {
  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    return request.signal.aborted ? [] : grants;
  }
}

/** Calls every attempt the first, as if nothing were ever delivered twice. */
class HidesAttempts extends PassThrough {
  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    return grants.map(({ lease, item }) => ({ lease, item: Object.assign({}, item, { attempt: 1 }) }));
  }
}

export const leaksLeases: BrokenEngine = brokenEngine(
  "G11",
  "leaks leases of claims given up",
  () => (inner) => new LeaksLeases(inner),
);
export const hidesAttempts: BrokenEngine = brokenEngine(
  "G11",
  "hides that an item came before",
  () => (inner) => new HidesAttempts(inner),
);
