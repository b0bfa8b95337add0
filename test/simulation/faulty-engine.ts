import { type Instant, instant } from "../../src/domain/clock.ts";
import { OutcomeUnknown } from "../../src/domain/errors.ts";
import type * as port from "../../src/engine/port.ts";
import type { Locks } from "../../src/locks/port.ts";
import type { Repeatable } from "./network.ts";
import { endedOf, leaseNumber } from "./recording-engine.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** A reading of a process's clocks, and when it was really taken. */
interface Stamp {
  readonly since: Instant;
  readonly at: number;
}

/**
 * The engine as one process sees it: the store at the other end of a network that delays, loses and repeats, and
 * that dies together with the process. Requests of one process arrive in order, as the port promises; a repeated
 * one comes late, as a retransmission does.
 */
export class FaultyEngine implements port.Engine {
  readonly name: string;
  readonly runs: boolean;
  readonly #store: port.Engine;
  readonly #process: SimulatedProcess;
  #lastArrival = 0;

  constructor(store: port.Engine, process: SimulatedProcess) {
    this.name = store.name;
    this.runs = store.runs === true;
    this.#store = store;
    this.#process = process;
  }

  declare(request: port.DeclareRequest): Promise<port.QueueDeclaration> {
    return this.#call("declare", "once", () => this.#store.declare(request));
  }

  submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    // Without an id the same item would be accepted twice, which is not the store's fault.
    const repeatable = submissions.every(({ id }) => id !== undefined) ? "repeatable" : "once";
    // What was refused is not remembered: repeated, it might be accepted after its submitter was told otherwise.
    const accepted = (results: readonly port.SubmitResult[]): boolean => results.every(({ ok }) => ok);
    return this.#call("submit", repeatable, () => this.#store.submit(submissions), accepted);
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const giveUp = new AbortController();
    const stamps = new Map<port.Grant, Stamp>();
    const forward = (): void => void this.#process.time.after(this.#process.random.next() * 5, () => giveUp.abort());
    request.signal.addEventListener("abort", forward);
    if (request.signal.aborted) forward();
    try {
      const grants = await this.#call("claim", "once", async () => {
        const made = await this.#store.claim({ ...request, ...this.#hearing(request), signal: giveUp.signal });
        // A driver reads its clocks right before the write that makes the lease. A claim may wait for long before
        // that write, so this is the latest reading that the port allows: the hardest case.
        const stamp = this.#stamp();
        for (const grant of made) stamps.set(grant, stamp);
        return made;
      });
      return grants.map((grant) => {
        const lease = this.#heard(grant.lease, stamps.get(grant) ?? this.#stamp(), request.leaseMs);
        this.#doubt(lease, request.lost);
        return Object.assign({}, grant, { lease });
      });
    } finally {
      request.signal.removeEventListener("abort", forward);
    }
  }

  async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    const stamp = this.#stamp();
    const lease = await this.#call("hold", "once", () => this.#store.hold({ ...request, ...this.#hearing(request) }));
    return lease === undefined ? undefined : this.#heard(lease, stamp, request.leaseMs);
  }

  async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const stamp = this.#stamp();
    for (const { lease, ended } of renewals) {
      this.#process.log({ type: "renewing", lease: leaseNumber(lease), ended: ended?.map(endedOf) });
    }
    const results = await this.#call("renew", "repeatable", () => this.#store.renew(renewals));
    return results.map((result, index): port.RenewResult => {
      const renewal = renewals[index];
      if (renewal === undefined) return result;
      this.#process.log({
        type: "renewed",
        lease: leaseNumber(renewal.lease),
        ok: result.ok,
        ended: renewal.ended?.map(endedOf),
        cancelRequested: result.ok && result.cancelRequested,
        since: stamp.at,
        sinceWall: stamp.since.wall,
      });
      return result.ok ? { ok: true, since: stamp.since, cancelRequested: result.cancelRequested } : result;
    });
  }

  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const stamp = this.#stamp();
    for (const { lease, ended = [], ending } of settlements) {
      const report = { ended: ended.map(endedOf), ending: ending.type };
      this.#process.log({ type: "settling", lease: leaseNumber(lease), ...report });
    }
    const heard = settlements.map(({ next, ...one }) =>
      next === undefined ? one : { ...one, next: { ...next, ...this.#hearing(next) } },
    );
    const answer = this.#call("settle", "repeatable", () => this.#store.settle(heard));
    const answered = (): void => {
      for (const { lease } of settlements) this.#process.log({ type: "settle-answered", lease: leaseNumber(lease) });
    };
    answer.then(answered, () => {
      for (const { lease } of settlements) this.#process.log({ type: "settle-unknown", lease: leaseNumber(lease) });
    });
    const results = await answer;
    return results.map((result, index): port.SettleResult => {
      const next = settlements[index]?.next;
      if (typeof result !== "object" || next === undefined) return result;
      const lease = this.#heard(result.lease, stamp, next.leaseMs);
      this.#doubt(lease, next.lost);
      return Object.assign({}, result, { lease });
    });
  }

  find(request: port.ItemRequest): Promise<port.ItemReport | undefined> {
    return this.#call("find", "once", () => this.#store.find(request));
  }

  outcome(request: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    return this.#call("outcome", "once", () => this.#store.outcome(request));
  }

  cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    return this.#call("cancel", "once", () => this.#store.cancel(request));
  }

  pause(request: port.PauseRequest): Promise<void> {
    return this.#call("pause", "once", () => this.#store.pause(request));
  }

  deleteQueue(request: port.DeleteQueueRequest): Promise<boolean> {
    return this.#call("deleteQueue", "once", () => this.#store.deleteQueue(request));
  }

  queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return this.#call("queues", "once", () => this.#store.queues(request));
  }

  keys(request: port.PageRequest): Promise<readonly port.KeyReport[]> {
    return this.#call("keys", "once", () => this.#store.keys(request));
  }

  dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return this.#call("dead", "once", () => this.#store.dead(request));
  }

  revive(request: port.ReviveRequest): Promise<number> {
    return this.#call("revive", "once", () => this.#store.revive(request));
  }

  /** Locks have a simulation of their own; nothing in this one asks for them. */
  locks(): Locks {
    return this.#store.locks();
  }

  check(): Promise<readonly port.Finding[]> {
    return this.#call("check", "once", () => this.#store.check());
  }

  close(): Promise<void> {
    return this.#call("close", "once", () => this.#store.close());
  }

  #call<T>(
    what: string,
    repeatable: Repeatable,
    execute: () => Promise<T>,
    mayRepeat: (answer: T) => boolean = () => true,
  ): Promise<T> {
    const process = this.#process;
    const { time, network } = process;
    return new Promise<T>((resolve, reject) => {
      if (process.dead) return;
      const fate = network.fate(repeatable);
      if (fate.crash === "before") return process.crash(`before ${what}`);
      const giveUp = (): void =>
        void time.after(fate.giveUpMs, () => process.deliver(() => reject(new OutcomeUnknown(what))));
      const reply = (answer: () => void): void => {
        for (const kind of fate.onReply) process.suffer(kind, what);
        time.after(fate.replyMs, () =>
          fate.lost === "reply" || network.partitioned ? giveUp() : process.deliver(answer),
        );
      };
      const arrival = Math.max(this.#lastArrival, time.now + fate.requestMs);
      this.#lastArrival = arrival;
      for (const kind of fate.onRequest) process.suffer(kind, what);
      time.after(arrival - time.now, () => {
        if (fate.onRequest.includes("slow")) process.suffer("late", what);
        if (fate.lost === "request" || network.partitioned) return giveUp();
        const answered = execute();
        const pass = (): void => reply(() => resolve(answered));
        answered.then(pass, pass);
        const { againMs } = fate;
        if (againMs !== undefined) {
          const again = (value: T): void => {
            if (mayRepeat(value)) time.after(againMs, () => void execute().catch(() => undefined));
          };
          answered.then(again, () => undefined);
        }
        if (fate.crash === "between") process.crash(`after ${what} reached the store`);
      });
    });
  }

  /** News of a lost lease takes its time too, and may never come. */
  #hearing({ lost }: { readonly lost?: port.LostListener }): { lost?: port.LostListener } {
    if (lost === undefined) return {};
    const { network, time } = this.#process;
    return {
      lost: (lease) => {
        const { replyMs, lost: isLost } = network.fate("once");
        if (isLost !== undefined || network.partitioned) return;
        time.after(replyMs, () => this.#process.deliver(() => lost(lease)));
      },
    };
  }

  /** Somebody says that a key went to somebody else, and it is not true. */
  #doubt(lease: port.Lease, lost: port.LostListener | undefined): void {
    const { network, time } = this.#process;
    const { isFalse, afterMs } = network.hint();
    if (isFalse && lost !== undefined) time.after(afterMs, () => this.#process.deliver(() => lost(lease)));
  }

  #stamp(): Stamp {
    return { since: instant(this.#process.clock), at: this.#process.time.now };
  }

  #heard(lease: port.Lease, stamp: Stamp, leaseMs: number): port.Lease {
    const { key, fence } = lease;
    const number = leaseNumber(lease);
    const { since, at } = stamp;
    this.#process.log({ type: "granted", lease: number, key, fence, leaseMs, since: at, sinceWall: since.wall });
    this.#process.noteLease(key, fence, number);
    return { ...lease, since };
  }
}
