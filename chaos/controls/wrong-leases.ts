/** Stores that are wrong about how long a lease lasts, or about what becomes of an item that was begun. */
import type * as port from "../../src/index.ts";
import { PassThrough } from "../../test/pass-through.ts";

/** Of the lease that was asked for: less than it, and more than its worker relies on. */
const SHARE = 0.85;

/** A lease is over a little before its time, when its worker has just stopped. */
export class EndsLeasesEarly extends PassThrough {
  override claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    return super.claim({ ...request, leaseMs: request.leaseMs * SHARE });
  }

  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return super.renew(renewals.map((renewal) => ({ ...renewal, leaseMs: renewal.leaseMs * SHARE })));
  }
}

/** What failed goes to the end of its line. */
export class LetsOthersPass extends PassThrough {
  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return super.settle(
      settlements.map((one) =>
        one.ending.type === "retry"
          ? Object.assign({}, one, { ending: { ...one.ending, place: "yield" as const } })
          : one,
      ),
    );
  }
}

/** What failed for good is not kept. */
export class DropsDeadLetters extends PassThrough {
  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return super.settle(
      settlements.map((one) =>
        one.ending.type === "dead" ? Object.assign({}, one, { ending: { type: "done" as const } }) : one,
      ),
    );
  }
}

/** What was begun and has to be given out again, because its worker was lost, is forgotten instead. */
export class ForgetsBegun extends PassThrough {
  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    for (;;) {
      const grants = await super.claim(request);
      const { fresh = [], begun = [] } = Object.groupBy(grants, ({ item }) => (item.attempt === 1 ? "fresh" : "begun"));
      if (begun.length > 0)
        await super.settle(begun.map(({ lease }) => ({ lease, ending: { type: "done" as const } })));
      if (fresh.length > 0 || grants.length === 0) return fresh;
    }
  }
}
