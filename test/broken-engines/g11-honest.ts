import type {
  ClaimRequest,
  Grant,
  ItemReport,
  ItemRequest,
  Outcome,
  OutcomeRequest,
  Settlement,
  SettleResult,
} from "../../src/engine/port.ts";
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
    return grants.map((grant) => Object.assign({}, grant, { item: Object.assign({}, grant.item, { attempt: 1 }) }));
  }
}

/** Counts attempts, and forgets how they ended. */
class ForgetsFailures extends PassThrough {
  override async find(request: ItemRequest): Promise<ItemReport | undefined> {
    const report = await super.find(request);
    if (report === undefined) return undefined;
    const { failure: _failure, attempts: _attempts, ...rest } = report;
    return rest;
  }
}

/** Has what came to nothing while the item lives, and drops it with the item. */
class ForgetsAtTheEnd extends PassThrough {
  override async outcome(request: OutcomeRequest): Promise<Outcome | undefined> {
    const outcome = await super.outcome(request);
    if (outcome === undefined) return undefined;
    const { attempts: _, ...rest } = outcome;
    return rest;
  }
}

/** Takes an item whose result was not kept for one that had none. */
class HidesMissingResults extends PassThrough {
  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return super.settle(
      settlements.map((one) =>
        one.ending.type === "done" && one.ending.resultMissing !== undefined
          ? Object.assign({}, one, { ending: { type: "done" } })
          : one,
      ),
    );
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
export const forgetsFailures: BrokenEngine = brokenEngine(
  "G11",
  "forgets why an item that waits has failed",
  () => (inner) => new ForgetsFailures(inner),
);
export const forgetsAtTheEnd: BrokenEngine = brokenEngine(
  "G11",
  "forgets the failures of what has ended",
  () => (inner) => new ForgetsAtTheEnd(inner),
);
export const hidesMissingResults: BrokenEngine = brokenEngine(
  "G11",
  "hides that a result was not kept",
  () => (inner) => new HidesMissingResults(inner),
);
