/** Stores that do not compare fences, or lose count of them. */
import { type Lease, OutcomeUnknown } from "../../src/index.ts";
import type * as port from "../../src/index.ts";
import { PassThrough } from "../../test/pass-through.ts";
import { now } from "../history/clock.ts";

/** Whoever wants to renew is told yes, and nobody looks whose the lease is. */
export class RenewsAnything extends PassThrough {
  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const since = { wall: Date.now(), monotonic: now() };
    return Promise.resolve(renewals.map(() => ({ ok: true, since, cancelRequested: false })));
  }
}

/** Whoever settles is told yes. A renewal that would show the loss before gets no answer. */
export class SettlesAnything extends PassThrough {
  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const results = await super.renew(renewals);
    if (results.every(({ ok }) => ok)) return results;
    throw new OutcomeUnknown("a renewal");
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const results = await super.settle(settlements);
    return results.map(() => "settled" as const);
  }
}

/** After a restart it counts from one again. */
export class ForgetsFences extends PassThrough {
  readonly #real = new WeakMap<object, Lease>();
  #first: number | undefined;

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await super.claim(request);
    return grants.map((grant) => {
      const { lease } = grant;
      this.#first ??= lease.fence;
      const handle = {};
      this.#real.set(handle, lease);
      const fence = Math.max(1, lease.fence - this.#first + 1);
      return Object.assign({}, grant, { lease: Object.assign({}, lease, { handle, fence }) });
    });
  }

  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return super.renew(renewals.map((renewal) => ({ ...renewal, lease: this.#realOf(renewal.lease) })));
  }

  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return super.settle(settlements.map((one) => Object.assign({}, one, { lease: this.#realOf(one.lease) })));
  }

  #realOf(lease: Lease): Lease {
    const { handle } = lease;
    return (typeof handle === "object" && handle !== null ? this.#real.get(handle) : undefined) ?? lease;
  }
}
