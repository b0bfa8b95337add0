import type * as port from "../src/engine/port.ts";
import { PassThrough } from "./pass-through.ts";

/** A real engine whose calls a test can watch, hold up, or make fail. */
export class ScriptedEngine extends PassThrough {
  readonly claims: port.ClaimRequest[] = [];
  readonly renewals: (readonly port.Renewal[])[] = [];
  readonly settlements: (readonly port.Settlement[])[] = [];
  onClaim: ((request: port.ClaimRequest) => Promise<readonly port.Grant[]>) | undefined;
  onRenew: ((renewals: readonly port.Renewal[]) => Promise<readonly port.RenewResult[]>) | undefined;
  onSettle: ((settlements: readonly port.Settlement[]) => Promise<readonly port.SettleResult[]>) | undefined;

  override claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    this.claims.push(request);
    return this.onClaim === undefined ? this.inner.claim(request) : this.onClaim(request);
  }

  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    this.renewals.push(renewals);
    return this.onRenew === undefined ? this.inner.renew(renewals) : this.onRenew(renewals);
  }

  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    this.settlements.push(settlements);
    return this.onSettle === undefined ? this.inner.settle(settlements) : this.onSettle(settlements);
  }
}

/** For a store that does not answer. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}
