import type { Instant } from "../../domain/clock.ts";
import type { Duration } from "../../domain/duration.ts";
import { LeaseLost } from "../../domain/errors.ts";
import type { OptionNames } from "../../domain/options.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import type { Shared } from "../shared.ts";
import { Heartbeat, type Loss } from "./heartbeat.ts";
import { type HeldLock, Hold, type HoldKeeper } from "./hold.ts";
import { LockBusy } from "./lock-busy.ts";
import { answer, keepAlive, Patience } from "./patience.ts";
import { unanswered } from "./unanswered.ts";

export interface HoldOptions {
  /** Instead of the queue's. */
  readonly lease?: Duration | undefined;
  /** How long to wait for whoever works on the key: a time, `"0s"` to try once, or `"forever"`, the default. */
  readonly wait?: Duration | undefined;
  /** Gives up waiting. */
  readonly signal?: AbortSignal | undefined;
}

export const HOLD_OPTIONS: OptionNames<HoldOptions> = { lease: true, wait: true, signal: true };

/** Takes a key of a queue as a lock: while it is held no worker gets the key, and whoever works on it is waited for. */
export async function holdKey(
  shared: Shared,
  request: Omit<HoldRequest, "signal">,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<HeldLock> {
  signal?.throwIfAborted();
  const { queue, key, leaseMs } = request;
  using patience = new Patience(shared.clock, waitMs, signal);
  let keeper: KeyKeeper | undefined;
  const lost = (): void => keeper?.doubt();
  const holding = shared.engine.hold({ ...request, signal: patience.signal, lost }).then((lease) => ({ lease }));
  const answered = await answer(shared.clock, { waitMs, signal }, holding, async (late) => {
    if (late.lease !== undefined) await shared.engine.settle([{ lease: late.lease, ending: { type: "release" } }]);
  });
  if (answered === undefined) {
    signal?.throwIfAborted();
    throw unanswered(`${queue}/${key}`);
  }
  const { lease } = answered;
  if (lease !== undefined) {
    keeper = new KeyKeeper(shared, lease, leaseMs);
    return keeper.hold;
  }
  signal?.throwIfAborted();
  throw new LockBusy(`${queue}/${key}`, "held", undefined);
}

const RENEWING = "renewing the hold of a key";

/** Keeps one held key. Its lease is the engine's, like that of an item in work. */
class KeyKeeper implements HoldKeeper {
  readonly hold: Hold;
  readonly #shared: Shared;
  readonly #lease: Lease;
  readonly #heartbeat: Heartbeat;

  constructor(shared: Shared, lease: Lease, leaseMs: number) {
    const { queue, key, fence, since } = lease;
    this.#shared = shared;
    this.#lease = lease;
    this.hold = new Hold(`${queue}/${key}`, fence, this, (why) => new LeaseLost(queue, key, fence, why));
    this.#heartbeat = new Heartbeat({ leaseMs, since, renew: () => this.#renew(leaseMs) }, shared.clock, {
      lost: (loss) => this.#lose(loss),
      stalled: (stall) => shared.emit({ type: "session-stalled", ...stall, locks: [this.hold.name] }),
      trouble: (error) => this.trouble(RENEWING, error),
      answered: () => shared.outages.worked(RENEWING),
    });
    shared.workers.add(this);
  }

  get leftMs(): number {
    return this.#heartbeat.leftMs;
  }

  check(): boolean {
    return this.#heartbeat.check();
  }

  /** Somebody says that the key went to somebody else. */
  doubt(): void {
    this.#heartbeat.renewNow();
  }

  async release(): Promise<boolean> {
    this.#end();
    using _alive = keepAlive();
    // Retiring is for locks: what is done with a key, its items say.
    const [result] = await this.#shared.engine.settle([{ lease: this.#lease, ending: { type: "release" } }]);
    return result === "settled";
  }

  trouble(doing: string, error: unknown): void {
    this.#shared.outages.failed(doing, error);
  }

  /** The connection closes. */
  async stop(): Promise<void> {
    await this.hold[Symbol.asyncDispose]();
  }

  async #renew(leaseMs: number): Promise<Instant | undefined> {
    const [result] = await this.#shared.engine.renew([{ lease: this.#lease, leaseMs }]);
    return result?.ok === true ? result.since : undefined;
  }

  #lose(loss: Loss): void {
    this.#end();
    this.hold.lose(loss === "expired" ? "its time ran out before it was renewed" : "the store no longer has it");
    this.#shared.emit({ type: "session-lost", owner: this.hold.name, why: loss, locks: [this.hold.name] });
  }

  #end(): void {
    this.#heartbeat.stop();
    this.#shared.workers.delete(this);
  }
}
