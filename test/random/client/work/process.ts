import { Baton } from "../../../../src/client/baton.ts";
import type { Queue } from "../../../../src/client/queue.ts";
import type { Clock, Timer } from "../../../../src/domain/clock.ts";
import { BatonError, OutcomeUnknown } from "../../../../src/domain/errors.ts";
import type * as port from "../../../../src/engine/port.ts";
import type { BatonEvent } from "../../../../src/index.ts";
import type { Random } from "../../../kit/random.ts";
import { PassThrough } from "../../../pass-through.ts";
import { ShiftedClock } from "../../../simulation/shifted-clock.ts";
import type { VirtualTime } from "../../../simulation/virtual-time.ts";
import type { Plan } from "./plan.ts";

/** The store stamps leases for its handles: one clock for all. */
export const CLOCK_ZERO_MS = 1_000;
const AWAY_MS = 20;
const WAY_MS = 4;

/** A process with the real client and the real worker in it. Its way to the store takes a moment, and is cut in outages. */
export class WorkProcess {
  readonly name: string;
  readonly clock: ShiftedClock;
  readonly baton: Baton;
  readonly queue: Queue<number>;
  readonly events: (BatonEvent & { readonly at: number })[] = [];
  readonly timers: Set<Timer> = new Set();
  isClosing = false;
  /** Nothing gets through, or everything and no reply comes back. */
  outage: "none" | "away" | "replies lost" = "none";
  outageEndedAt = 0;
  readonly #gone = new Set<AbortController>();

  constructor(time: VirtualTime, engine: port.Engine, name: string, random: Random, plan: Plan) {
    this.name = name;
    this.clock = new ShiftedClock(time, CLOCK_ZERO_MS, 0, (callback) => callback());
    const clock: Clock = {
      wall: () => this.clock.wall(),
      monotonic: () => this.clock.monotonic(),
      setTimer: (delayMs, callback) => this.#setTimer(delayMs, callback),
    };
    const jitter = random.fork();
    this.baton = new Baton(new DistantEngine(engine, this), {
      clock,
      random: () => jitter.next(),
      onEvent: (event) => void this.events.push({ ...event, at: time.now }),
    });
    this.queue = this.baton.queue<number>("work", plan.queue);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.clock.setTimer(ms, () => {
        signal?.removeEventListener("abort", end);
        resolve();
      });
      const end = (): void => {
        timer.cancel();
        resolve();
      };
      if (signal?.aborted === true) end();
      else signal?.addEventListener("abort", end, { once: true });
    });
  }

  /** There and back. In an outage it is known soon that no answer will come. */
  async call<T>(ask: () => Promise<T>, changes: boolean): Promise<T> {
    if (this.outage === "away") {
      await this.sleep(AWAY_MS);
      throw new BatonError("STORE_UNAVAILABLE", "No answer.");
    }
    // Calls of one process arrive in order, and so do their answers.
    await this.sleep(WAY_MS);
    const answer = await ask();
    if (this.outage === "replies lost" && changes) {
      await this.sleep(AWAY_MS);
      throw new OutcomeUnknown("a call");
    }
    return answer;
  }

  /** What waits at the store is called off when the store cannot be reached any more. */
  async whileThere<T>(outer: AbortSignal, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const gone = new AbortController();
    this.#gone.add(gone);
    const end = (): void => gone.abort();
    outer.addEventListener("abort", end);
    if (outer.aborted) end();
    try {
      const answer = await ask(gone.signal);
      if (!outer.aborted && gone.signal.aborted && Array.isArray(answer) && answer.length === 0)
        throw new BatonError("STORE_UNAVAILABLE", "The connection broke.");
      return answer;
    } finally {
      this.#gone.delete(gone);
      outer.removeEventListener("abort", end);
    }
  }

  begin(outage: "away" | "replies lost"): void {
    this.outage = outage;
    if (outage === "away") for (const gone of this.#gone) gone.abort();
  }

  #setTimer(delayMs: number, callback: () => void): Timer {
    const timer = this.clock.setTimer(delayMs, () => {
      this.timers.delete(timer);
      callback();
    });
    this.timers.add(timer);
    return {
      cancel: () => {
        this.timers.delete(timer);
        timer.cancel();
      },
    };
  }
}

class DistantEngine extends PassThrough {
  readonly #process: WorkProcess;

  constructor(inner: port.Engine, process: WorkProcess) {
    super(inner);
    this.#process = process;
  }

  override declare(request: port.DeclareRequest): Promise<port.QueueDeclaration> {
    return this.#process.call(() => super.declare(request), false);
  }

  override submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    return this.#process.call(() => super.submit(submissions), true);
  }

  /** One that waits is called off when the store cannot be reached. */
  override claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    return this.#process.call(
      () => this.#process.whileThere(request.signal, (signal) => super.claim({ ...request, signal })),
      false,
    );
  }

  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return this.#process.call(() => super.renew(renewals), true);
  }

  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return this.#process.call(() => super.settle(settlements), true);
  }

  override queues(request: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    return this.#process.call(() => super.queues(request), false);
  }

  override hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    return this.#process.call(() => super.hold(request), false);
  }

  override cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    return this.#process.call(() => super.cancel(request), true);
  }

  override pause(request: port.PauseRequest): Promise<void> {
    return this.#process.call(() => super.pause(request), true);
  }
}
