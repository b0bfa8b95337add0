import { BatonError, Fatal, RetryLater } from "../../src/domain/errors.ts";
import type { Handler, WorkItem } from "../../src/worker/handler.ts";
import type { HeldLease } from "../../src/worker/held-item.ts";
import type { Guard, HandlerEnd } from "./history.ts";
import type { ItemPlan } from "./plans.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** Somebody's handler: of random length, more or less careful, failing as the item's plan says. */
export function simulatedHandler(
  process: SimulatedProcess,
  planOf: (token: number) => ItemPlan,
  isCalm: () => boolean,
): Handler<number> {
  return (item, lease) => {
    const { random } = process;
    const token = item.payload;
    const guard = random.pick<Guard>(["check", "check", "signal", "signal", "careless"]);
    const number = process.leaseNumber(lease.key, lease.fence);
    process.log({ type: "started", lease: number, token, attempt: item.attempt, guard });
    process.handlersRunning += 1;
    const finished = (how: HandlerEnd): void => {
      process.handlersRunning -= 1;
      process.log({ type: "finished", lease: number, token, how });
    };
    const act = new Act(process, item, lease, guard, number, planOf(token), isCalm());
    const { quick } = process.settings;
    if (random.chance(quick)) {
      if (random.chance(0.3)) return act.soon(finished);
    } else if (!random.chance(0.15)) return act.slowly(finished);
    try {
      const result = act.atOnce();
      finished("returned");
      return result;
    } catch (error) {
      finished(endOf(error));
      throw error;
    }
  };
}

class Act {
  readonly #process: SimulatedProcess;
  readonly #item: WorkItem<number>;
  readonly #lease: HeldLease;
  readonly #guard: Guard;
  readonly #number: number;
  readonly #plan: ItemPlan;
  readonly #calm: boolean;

  constructor(
    process: SimulatedProcess,
    item: WorkItem<number>,
    lease: HeldLease,
    guard: Guard,
    number: number,
    plan: ItemPlan,
    calm: boolean,
  ) {
    this.#process = process;
    this.#item = item;
    this.#lease = lease;
    this.#guard = guard;
    this.#number = number;
    this.#plan = plan;
    this.#calm = calm;
  }

  atOnce(): unknown {
    this.#perhapsKill();
    this.#effect();
    return this.#conclude();
  }

  /** In a few milliseconds. */
  soon(finished: (how: HandlerEnd) => void): Promise<unknown> {
    return this.#through(finished, async () => {
      const lengthMs = this.#process.random.next() * 6;
      await this.#process.sleep(lengthMs / 2);
      this.#process.inTheMiddle();
      await this.#process.sleep(lengthMs / 2);
      return this.atOnce();
    });
  }

  slowly(finished: (how: HandlerEnd) => void): Promise<unknown> {
    return this.#through(finished, () => this.#steps());
  }

  async #through(finished: (how: HandlerEnd) => void, work: () => Promise<unknown>): Promise<unknown> {
    try {
      const result = await work();
      finished("returned");
      return result;
    } catch (error) {
      finished(endOf(error));
      throw error;
    }
  }

  async #steps(): Promise<unknown> {
    const { random, settings } = this.#process;
    const steps = random.between(1, 6);
    const lengthMs = this.#lengthMs();
    for (let step = 0; step < steps; step += 1) {
      await this.#process.sleep(lengthMs / steps, this.#guard === "signal" ? this.#lease.signal : undefined);
      this.#perhapsKill();
      if (!this.#calm && random.chance(settings.faults.crashInHandler)) {
        this.#process.crash("in a handler");
        await new Promise<never>(() => undefined);
      }
      if (!this.#calm && random.chance(settings.faults.blockInHandler)) {
        this.#process.pause("event loop blocked", settings.leaseMs * (1.5 + random.next() * 1.5));
      }
      if (random.chance(0.3)) this.#lease.progress((step + 1) / steps);
      this.#effect();
    }
    return this.#conclude();
  }

  /** What follows in the product does not reach anybody any more. */
  #perhapsKill(): void {
    if (!this.#calm && this.#item.attempt <= this.#plan.kills) this.#process.crash("by a poisonous item");
  }

  #lengthMs(): number {
    const { random, settings } = this.#process;
    if (this.#calm) return random.between(0, 30);
    if (random.chance(0.25)) return settings.leaseMs * (0.5 + random.next() * 2);
    return random.next() * random.pick([20, 100, settings.leaseMs * 0.6]);
  }

  /** A write to somebody else's store, with the fence. */
  #effect(): void {
    if (this.#guard === "check") this.#lease.check();
    if (this.#guard === "signal") this.#lease.signal.throwIfAborted();
    const { key, fence } = this.#lease;
    const wall = this.#process.clock.wall();
    this.#process.log({ type: "effect", lease: this.#number, key, fence, guard: this.#guard, wall });
  }

  #conclude(): unknown {
    const { random } = this.#process;
    if (this.#item.attempt > this.#plan.failures) return random.pick([undefined, { fine: true }, "text", null]);
    switch (this.#plan.failure) {
      case "throw":
        throw new Error("planned to fail");
      case "fatal":
        throw new Fatal("planned to be fatal");
      case "later":
        throw new RetryLater(random.between(0, 300));
      case "odd":
        // oxlint-disable-next-line typescript/only-throw-error -- What a user's handler throws need not be an Error.
        throw random.pick<unknown>([undefined, "odd", 17, { odd: true }]);
    }
  }
}

function endOf(error: unknown): HandlerEnd {
  if (!(error instanceof BatonError)) return "threw";
  switch (error.code) {
    case "FATAL":
      return "fatal";
    case "RETRY_LATER":
      return "later";
    case "STOPPING":
      return "stopping";
    case "CANCELLED":
      return "cancelled";
    case "LEASE_LOST":
      return "lost";
    case "HANDLER_TIMEOUT":
      return "timeout";
    default:
      return "threw";
  }
}
