import type * as port from "../src/engine/port.ts";
import type { Locks } from "../src/locks/port.ts";

/** An engine that passes every call on. What is broken or planted overrides what it gets wrong, and nothing else. */
export class PassThrough implements port.Engine {
  readonly name: string;
  readonly runs: boolean;
  protected readonly inner: port.Engine;

  constructor(inner: port.Engine) {
    this.name = inner.name;
    this.runs = inner.runs === true;
    this.inner = inner;
  }

  declare(request: port.DeclareRequest): Promise<port.QueueDeclaration> {
    return this.inner.declare(request);
  }

  submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    return this.inner.submit(submissions);
  }

  claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    return this.inner.claim(request);
  }

  hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    return this.inner.hold(request);
  }

  renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return this.inner.renew(renewals);
  }

  settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return this.inner.settle(settlements);
  }

  find(request: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return this.inner.find(request);
  }

  outcome(request: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    return this.inner.outcome(request);
  }

  cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    return this.inner.cancel(request);
  }

  pause(request: port.PauseRequest): Promise<void> {
    return this.inner.pause(request);
  }

  deleteQueue(request: port.DeleteQueueRequest): Promise<boolean> {
    return this.inner.deleteQueue(request);
  }

  queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return this.inner.queues(request);
  }

  keys(request: port.PageRequest): Promise<readonly port.KeyReport[]> {
    return this.inner.keys(request);
  }

  dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return this.inner.dead(request);
  }

  revive(request: port.ReviveRequest): Promise<number> {
    return this.inner.revive(request);
  }

  locks(): Locks {
    return this.inner.locks();
  }

  check(): Promise<readonly port.Finding[]> {
    return this.inner.check();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
