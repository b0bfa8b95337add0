import type { Clock } from "../../src/domain/clock.ts";
import { bodyText } from "../../src/domain/payload.ts";
import type * as port from "../../src/engine/port.ts";
import type { Locks } from "../../src/locks/port.ts";
import type { Ended, GrantedItem, History, StoreSubmission } from "./history.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Numbers that are unique in a run. */
export class Numbers {
  #last = 0;

  next(): number {
    this.#last += 1;
    return this.#last;
  }
}

export interface Recording {
  readonly time: VirtualTime;
  readonly history: History;
  readonly numbers: Numbers;
  readonly storeClock: Clock;
}

type Asking = port.ClaimRequest | port.NextRequest;

/** A lease as the history knows it, around the store's own handle. */
class NumberedHandle {
  readonly number: number;
  readonly original: port.Lease;

  constructor(number: number, original: port.Lease) {
    this.number = number;
    this.original = original;
  }
}

export function leaseNumber(lease: port.Lease): number {
  return numbered(lease).number;
}

function numbered(lease: port.Lease): NumberedHandle {
  if (lease.handle instanceof NumberedHandle) return lease.handle;
  throw new Error("A lease came back that the recorder never saw.");
}

/** Stands at the door of the store and writes down what is asked, in the order in which it is done, and the answers. */
export class RecordingEngine implements port.Engine {
  readonly name: string;
  readonly runs: boolean;
  readonly #inner: port.Engine;
  readonly #recording: Recording;
  readonly #process: string;

  constructor(inner: port.Engine, recording: Recording, process: string) {
    this.name = inner.name;
    this.runs = inner.runs === true;
    this.#inner = inner;
    this.#recording = recording;
    this.#process = process;
  }

  declare(request: port.DeclareRequest): Promise<port.QueueDeclaration> {
    return this.#inner.declare(request);
  }

  async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const entries = submissions.map(({ id, key, level, delayMs, mode, keepMs, payload }): StoreSubmission => ({
      token: Number(bodyText(payload.body)),
      id,
      key,
      level,
      delayMs,
      mode,
      kept: keepMs > 0,
    }));
    const { history } = this.#recording;
    history.add({ ...this.#here(), type: "store-submit", wall: this.#wall(), entries });
    const results = await this.#inner.submit(submissions);
    for (const [index, entry] of entries.entries()) {
      const result = results[index];
      if (result !== undefined) entry.answer = submitAnswer(result);
    }
    return results;
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const claim = this.#asked(request, request.max);
    try {
      const grants = await this.#inner.claim(request);
      return grants.map((grant) => this.#granted(grant, request, claim));
    } finally {
      this.#answered(claim);
    }
  }

  #asked({ worker, items = 1 }: Asking, max: number): number {
    const { history, numbers } = this.#recording;
    const claim = numbers.next();
    history.add({ ...this.#here(), type: "store-claim", claim, worker, max, items });
    return claim;
  }

  #answered(claim: number): void {
    this.#recording.history.add({ at: this.#recording.time.now, type: "store-claim-over", claim });
  }

  #granted(grant: port.Grant, { worker, leaseMs }: Asking, claim: number): port.Grant {
    const { history, numbers } = this.#recording;
    const { item, behind = [] } = grant;
    const { key } = item;
    const lease = numbers.next();
    const where = { ...this.#here(), claim, worker, lease, wall: this.#wall() };
    const { fence } = grant.lease;
    const first = grantedItem(item);
    history.add({ ...where, type: "store-grant", key, fence, ...first, behind: behind.map(grantedItem), leaseMs });
    return { ...grant, lease: { ...grant.lease, handle: new NumberedHandle(lease, grant.lease) } };
  }

  async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    const { history, numbers } = this.#recording;
    const { key, leaseMs } = request;
    const entry = history.add({ ...this.#here(), type: "store-hold" as const, key, leaseMs });
    const lease = await this.#inner.hold(request);
    Object.assign(entry, { refused: lease === undefined });
    if (lease === undefined) return undefined;
    const number = numbers.next();
    Object.assign(entry, { lease: number, fence: lease.fence });
    return { ...lease, handle: new NumberedHandle(number, lease) };
  }

  async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const entries = renewals.map(({ lease, leaseMs, ended }) =>
      this.#recording.history.add({
        ...this.#here(),
        type: "store-renew" as const,
        lease: leaseNumber(lease),
        key: lease.key,
        leaseMs,
        ended: ended?.map(endedOf),
      }),
    );
    const originals = renewals.map((renewal) => ({ ...renewal, lease: numbered(renewal.lease).original }));
    const results = await this.#inner.renew(originals);
    for (const [index, entry] of entries.entries()) Object.assign(entry, { ok: results[index]?.ok });
    return results;
  }

  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const entries = settlements.map(({ lease, ended = [], ending }) =>
      this.#recording.history.add({
        ...this.#here(),
        type: "store-settle" as const,
        lease: leaseNumber(lease),
        key: lease.key,
        ended: ended.map(endedOf),
        ending: ending.type,
        delayMs: ending.type === "retry" ? ending.delayMs : 0,
        place: ending.type === "retry" ? ending.place : "keep",
        wall: this.#wall(),
      }),
    );
    const originals = settlements.map((one) => ({ ...one, lease: numbered(one.lease).original }));
    const results = await this.#inner.settle(originals);
    return results.map((result, index): port.SettleResult => {
      const next = settlements[index]?.next;
      const isGrant = typeof result === "object" && next !== undefined;
      Object.assign(entries[index] ?? {}, { result: isGrant ? "settled" : result });
      if (!isGrant) return result;
      const claim = this.#asked(next, 1);
      const grant = this.#granted(result, next, claim);
      this.#answered(claim);
      return grant;
    });
  }

  find(request: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return this.#inner.find(request);
  }

  outcome(request: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    return this.#inner.outcome(request);
  }

  async cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    const entry = this.#recording.history.add({ ...this.#here(), type: "store-cancel" as const, id: request.id });
    const result = await this.#inner.cancel(request);
    Object.assign(entry, { result });
    return result;
  }

  async pause(request: port.PauseRequest): Promise<void> {
    const { key, paused } = request;
    const entry = this.#recording.history.add({ ...this.#here(), type: "store-pause" as const, key, paused });
    await this.#inner.pause(request);
    Object.assign(entry, { done: true });
  }

  deleteQueue(request: port.DeleteQueueRequest): Promise<boolean> {
    return this.#inner.deleteQueue(request);
  }

  queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return this.#inner.queues(request);
  }

  keys(request: port.PageRequest): Promise<readonly port.KeyReport[]> {
    return this.#inner.keys(request);
  }

  dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return this.#inner.dead(request);
  }

  revive(request: port.ReviveRequest): Promise<number> {
    return this.#inner.revive(request);
  }

  locks(): Locks {
    return this.#inner.locks();
  }

  check(): Promise<readonly port.Finding[]> {
    return this.#inner.check();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #here(): { readonly at: number; readonly process: string } {
    return { at: this.#recording.time.now, process: this.#process };
  }

  #wall(): number {
    return this.#recording.storeClock.wall();
  }
}

function grantedItem({ id, level, attempt, losses = 0, payload }: port.Item): GrantedItem {
  return { token: Number(bodyText(payload.body)), id, level, attempt, losses };
}

/** What a report says of an item of its run. */
export function endedOf({ id, ending }: port.EndedItem): Ended {
  return { id, ending: ending.type };
}

function submitAnswer(result: port.SubmitResult): NonNullable<StoreSubmission["answer"]> {
  if (!result.ok) return { ok: false, code: result.error.code };
  const { id, key, level, at, duplicate, replaced } = result.accepted;
  return { ok: true, id, key, level, acceptedAt: at, duplicate, replaced };
}
