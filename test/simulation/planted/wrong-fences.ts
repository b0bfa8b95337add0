import type * as port from "../../../src/engine/port.ts";
import type { VirtualTime } from "../virtual-time.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

/** A stale worker can finish an item that another one runs: the lease is matched by its key only. */
export const settleAnyFence: MakePlant = () => ({ store: (handle) => new SettleAnyFence(handle) });

/** A stale worker is told that all is well. */
export const renewAnyFence: MakePlant = () => ({ store: (handle) => new RenewAnyFence(handle) });

class AnyFence extends PassThrough {
  /** The same lease with whatever fence its key has now. */
  protected async current(lease: port.Lease, _isRun: boolean): Promise<port.Lease> {
    const keys = await this.inner.keys({ queue: lease.queue, limit: 100 });
    const fence = keys.find(({ key }) => key === lease.key)?.running?.fence;
    return fence === undefined ? lease : { ...lease, fence };
  }
}

export class SettleAnyFence extends AnyFence {
  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const results: port.SettleResult[] = [];
    for (const one of settlements) {
      results.push(
        ...(await this.inner.settle([{ ...one, lease: await this.current(one.lease, one.ended !== undefined) }])),
      );
    }
    return results;
  }
}

class RenewAnyFence extends AnyFence {
  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const current: port.Renewal[] = [];
    for (const renewal of renewals)
      current.push({ ...renewal, lease: await this.current(renewal.lease, renewal.ended !== undefined) });
    return this.inner.renew(current);
  }
}

/** At some moment the store is restarted, and counts fences from one again. */
export const resetFences: MakePlant = ({ time, random }) => {
  const restart = new Restart(time, random.between(500, 5_000));
  return { store: (handle) => new ResetFences(handle, restart) };
};

/** What all handles share: the moment of the restart, and which lease a low fence stands for. */
class Restart {
  readonly originals = new WeakMap<port.Lease, port.Lease>();
  readonly #time: VirtualTime;
  readonly #at: number;
  #firstAfter: number | undefined;

  constructor(time: VirtualTime, at: number) {
    this.#time = time;
    this.#at = at;
  }

  disguise(lease: port.Lease): port.Lease {
    if (this.#time.now >= this.#at) this.#firstAfter ??= lease.fence;
    if (this.#firstAfter === undefined) return lease;
    const disguised = { ...lease, fence: lease.fence - this.#firstAfter + 1 };
    this.originals.set(disguised, lease);
    return disguised;
  }

  original(lease: port.Lease): port.Lease {
    return this.originals.get(lease) ?? lease;
  }
}

class ResetFences extends PassThrough {
  readonly #restart: Restart;

  constructor(inner: port.Engine, restart: Restart) {
    super(inner);
    this.#restart = restart;
  }

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) => Object.assign({}, grant, { lease: this.#restart.disguise(grant.lease) }));
  }

  override async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    const lease = await this.inner.hold(request);
    return lease === undefined ? undefined : this.#restart.disguise(lease);
  }

  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return this.inner.renew(renewals.map((one) => ({ ...one, lease: this.#restart.original(one.lease) })));
  }

  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return this.inner.settle(settlements.map((one) => ({ ...one, lease: this.#restart.original(one.lease) })));
  }
}
