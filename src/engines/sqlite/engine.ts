import { isSimplyDone } from "../../engine/attempts.ts";
import { readHeaders } from "../../engine/stored-json.ts";
import { randomUUID } from "node:crypto";
import { systemClock } from "../../domain/clock.ts";
import { InvalidInput, LevelsDiffer, QueueNotEmpty } from "../../domain/errors.ts";
import { areSame } from "../../domain/level.ts";
import type * as port from "../../engine/port.ts";
import { locksOnRegister } from "../../locks/locks-on-register.ts";
import type { Locks } from "../../locks/port.ts";
import type { Register } from "../../locks/register.ts";
import type {
  EndedEntry,
  Granted,
  GrantTuple,
  ItemTuple,
  LeaseTuple,
  Replies,
  Requests,
  SettleTuple,
  ThreadData,
} from "./messages.ts";
import type { Wake } from "../../wake/wake.ts";
import { ForeignOutside } from "./foreign-outside.ts";
import { type Outside, OwnOutside } from "./outside.ts";
import { Submissions } from "./submissions.ts";
import { SqliteRegister } from "./register.ts";
import { ThreadLink } from "./thread-link.ts";

/** Fewer settlements than this wait for others of the same turn. */
const WORTH_SENDING = 8;

/** The engine as the application sees it: turns the port's calls into messages to the store's thread and back. */
export class SqliteEngine implements port.Engine {
  readonly name = "sqlite";
  readonly runs = true;
  readonly #link: ThreadLink;
  readonly #submissions: Submissions;
  /** What locks are kept in. */
  readonly register: Register;
  readonly #locks: Locks;
  readonly #outside: Outside;

  private constructor(link: ThreadLink, wake: Wake | undefined) {
    this.#link = link;
    this.#outside = wake === undefined ? new OwnOutside(link) : new ForeignOutside(link, wake);
    this.#submissions = new Submissions(link);
    this.register = new SqliteRegister(link, systemClock);
    this.#locks = locksOnRegister({ name: "sqlite", register: this.register, newId: randomUUID, watchesHolds: true });
  }

  /** @param wake in place of the files beside the store; closed with the engine */
  static async open(data: Omit<ThreadData, "wake" | "pulse">, wake?: Wake): Promise<SqliteEngine> {
    return new SqliteEngine(await ThreadLink.open({ ...data, wake: wake === undefined ? "own" : "foreign" }), wake);
  }

  /** Calls take effect in the order in which they were made: submissions that still wait for others go first. */
  get #store(): ThreadLink {
    this.#submissions.send();
    return this.#link;
  }

  async declare({ queue, levels }: port.DeclareRequest): Promise<port.QueueDeclaration> {
    const declaration = await this.#store.call("declare", { queue, levels });
    if (levels !== undefined && !areSame(levels, declaration.levels))
      throw new LevelsDiffer(queue, declaration.levels, levels);
    return declaration;
  }

  submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    return this.#submissions.submit(submissions);
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const { signal, lost, ...wish } = request;
    const { queue } = wish;
    if (signal.aborted) return [];
    const granted = await this.#wait("claim", wish, signal, this.#outside.asleep?.(queue, true));
    return granted.grants.map((tuple) => {
      const grant = toGrant(queue, granted, tuple);
      this.#outside.held.add(grant.lease, lost);
      return grant;
    });
  }

  async hold({ signal, lost, ...request }: port.HoldRequest): Promise<port.Lease | undefined> {
    const wish = { ...request, waits: !signal.aborted };
    const held = await this.#wait("hold", wish, signal, this.#outside.asleep?.(request.queue, false));
    if (held === undefined) return undefined;
    const { since, keyId, fence } = held;
    const { queue, key } = request;
    const lease: port.Lease = { queue, key, fence, since, handle: keyId };
    this.#outside.held.add(lease, lost);
    return lease;
  }

  async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const { since, results } = await this.#store.call(
      "renew",
      renewals.map(
        ({ lease, leaseMs, progress, ended }) =>
          [leaseTuple(lease), leaseMs, progress, ended?.map(endedEntry)] as const,
      ),
    );
    return results.map((result, index) => {
      if (result !== "lost") return { ok: true, since, cancelRequested: result === "cancel" };
      const lease = renewals[index]?.lease;
      if (lease !== undefined) this.#outside.held.remove(lease);
      return { ok: false };
    });
  }

  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const request = settlements.map(settleTuple);
    const store = this.#store;
    const call = settlements.length < WORTH_SENDING ? store.call("settle", request) : store.callNow("settle", request);
    const lost = new Set(await call);
    for (const { lease } of settlements) this.#outside.held.remove(lease);
    return settlements.map((_, index) => (lost.has(index) ? "lost" : "settled"));
  }

  find({ queue, id }: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return this.#store.call("find", { queue, id });
  }

  async outcome({ queue, id, signal }: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    if (signal.aborted) return undefined;
    return await this.#wait("outcome", { queue, id }, signal, this.#outside.awaiting?.(queue, id));
  }

  cancel({ queue, id }: port.ItemRequest): Promise<port.CancelResult> {
    return this.#store.call("cancel", { queue, id });
  }

  async pause(request: port.PauseRequest): Promise<void> {
    await this.#store.call("pause", request);
  }

  async deleteQueue(request: port.DeleteQueueRequest): Promise<boolean> {
    const result = await this.#store.call("deleteQueue", request);
    if (typeof result === "object") throw new QueueNotEmpty(request.queue, result);
    return result === "deleted";
  }

  queues({ queue }: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return this.#store.call("queues", { queue });
  }

  keys(request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    return this.#store.call("keys", request);
  }

  dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return this.#store.call("dead", request);
  }

  /** All of them in small steps: others want to write too. Letters that die meanwhile are left for the next time. */
  async revive(request: port.ReviveRequest): Promise<number> {
    let revived = 0;
    for (let upTo: number | undefined; ;) {
      const step = await this.#store.call("revive", { ...request, upTo });
      revived += step.revived;
      if (!step.more) return revived;
      ({ upTo } = step);
    }
  }

  async check(): Promise<readonly port.Finding[]> {
    const [store, outside] = await Promise.all([this.#store.call("check", null), this.#outside.check?.() ?? []]);
    return [...store, ...outside];
  }

  /** How often this connection has looked for ready keys: what wakes are there to keep small. */
  looks(): Promise<number> {
    return this.#store.call("looks", null);
  }

  locks(): Locks {
    return this.#locks;
  }

  async close(): Promise<void> {
    await this.#locks.close();
    await this.#store.close();
    await this.#outside.close?.();
  }

  /** A call that waits is answered early when its signal fires: with whatever it has got by then. */
  async #wait<K extends "claim" | "hold" | "outcome">(
    kind: K,
    request: Requests[K],
    signal: AbortSignal,
    leave: (() => void) | undefined,
  ): Promise<Replies[K]> {
    const { number, reply } = this.#store.start(kind, request);
    const abandon = (): void => {
      // A store that cannot be told has ended, and with it everything that waited.
      this.#store.call("abandon", { call: number }).catch(() => undefined);
    };
    signal.addEventListener("abort", abandon, { once: true });
    try {
      return await reply;
    } finally {
      signal.removeEventListener("abort", abandon);
      leave?.();
    }
  }
}

function settleTuple({ lease, ending, ended }: port.Settlement): SettleTuple {
  const [keyId, fence] = leaseTuple(lease);
  if (ended !== undefined && ended.length > 0) return [keyId, fence, ending, ended.map(endedEntry)];
  return isSimplyDone(ending) ? [keyId, fence] : [keyId, fence, ending];
}

function endedEntry(ended: port.EndedItem): EndedEntry {
  return isSimplyDone(ended.ending) ? ended.id : ended;
}

function toGrant(queue: string, { since, levels }: Granted, grant: GrantTuple): port.Grant {
  const [keyId, key, fence, rank, attempt, losses, behind, ...first] = grant;
  const of = { queue, key, level: levels[rank] ?? "" };
  const item = toItem(first, of, attempt);
  return {
    lease: { queue, key, fence, since, handle: keyId },
    item: losses === 0 ? item : { ...item, losses },
    ...(behind === undefined ? {} : { behind: behind.map((one) => toItem(one, of, 1)) }),
  };
}

function toItem(
  [id, type, body, written, submittedAt]: ItemTuple,
  of: Pick<port.Item, "queue" | "key" | "level">,
  attempt: number,
): port.Item {
  return { id, ...of, payload: { type, body }, ...readHeaders(written), submittedAt, attempt };
}

function leaseTuple({ handle, fence }: port.Lease): LeaseTuple {
  if (typeof handle !== "number") throw new InvalidInput("lease", handle, "a lease that this engine gave");
  return [handle, fence];
}
