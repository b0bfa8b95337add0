/**
 * A process whose time moves only when a test moves it: the clocks, the timers and the timeouts of everything that is
 * imported in it, ours and Node's global ones. What a test waits for in it takes no time, so that hours of back-off
 * cost milliseconds.
 *
 * Time stands still while anything is left to happen. Promises run to their end before the next immediate does; so
 * immediates are counted, and when none is outstanding all has come to rest.
 */
import { VirtualTime } from "../../simulation/virtual-time.ts";

const immediate = globalThis.setImmediate;
const clearRealImmediate = globalThis.clearImmediate;

const EPOCH_MS = 1_700_000_000_000;
/** More turns without time than anything but a loop takes. */
const MOST_TURNS = 20_000;

class VirtualTimer {
  cancel: () => void = () => undefined;

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

export class VirtualProcess {
  time: VirtualTime = new VirtualTime();
  readonly #outstanding = new Set<NodeJS.Immediate>();

  private constructor() {}

  /** For the rest of this process. */
  static install(): VirtualProcess {
    const virtual = new VirtualProcess();
    virtual.#replaceTimers();
    virtual.#replaceImmediates();
    // The module node:perf_hooks keeps the real one, for those who measure how long a test takes.
    const { timeOrigin } = performance;
    Object.defineProperty(globalThis, "performance", { value: { timeOrigin, now: () => virtual.time.now } });
    Object.defineProperty(Date, "now", { value: () => EPOCH_MS + virtual.time.now });
    Object.defineProperty(AbortSignal, "timeout", { value: (ms: number) => virtual.#timeout(ms) });
    return virtual;
  }

  get now(): number {
    return this.time.now;
  }

  /** Nothing that was planned before happens any more. */
  startAnew(): void {
    const { now } = this.time;
    this.time = new VirtualTime();
    this.time.now = now;
  }

  /** Time passes, and whatever is due in it happens. */
  async pass(ms: number): Promise<void> {
    await this.passUntil(() => false, ms);
  }

  /** Time passes until something is so, and no longer than told. Resolves with whether it is. */
  async passUntil(isSo: () => boolean, mostMs: number): Promise<boolean> {
    const until = this.time.now + mostMs;
    await this.#rest();
    while (!isSo()) {
      const { nextAt } = this.time;
      if (nextAt === undefined || nextAt > until) {
        this.time.now = until;
        return false;
      }
      this.time.step();
      await this.#rest();
    }
    return true;
  }

  async #rest(): Promise<void> {
    for (let turn = 0; turn < MOST_TURNS; turn += 1) {
      await new Promise<void>((resolve) => immediate(resolve));
      if (this.#outstanding.size === 0) return;
    }
    throw new Error("Something goes round in circles, without time passing.");
  }

  #timeout(ms: number): AbortSignal {
    const controller = new AbortController();
    this.time.after(ms, () => controller.abort(new DOMException("It took too long.", "TimeoutError")));
    return controller.signal;
  }

  #replaceTimers(): void {
    const set = (run: (...given: unknown[]) => void, ms: number, again: boolean, given: unknown[]): VirtualTimer => {
      const timer = new VirtualTimer();
      const arm = (): void => {
        const planned = this.time.after(Math.max(1, ms), () => {
          if (again) arm();
          run(...given);
        });
        timer.cancel = () => planned.cancel();
      };
      arm();
      return timer;
    };
    type Run = (...given: unknown[]) => void;
    const clear = (timer: unknown): void => {
      if (timer instanceof VirtualTimer) timer.cancel();
    };
    Object.assign(globalThis, {
      setTimeout: (run: Run, ms = 1, ...given: unknown[]) => set(run, ms, false, given),
      setInterval: (run: Run, ms = 1, ...given: unknown[]) => set(run, ms, true, given),
      clearTimeout: clear,
      clearInterval: clear,
    });
  }

  #replaceImmediates(): void {
    const outstanding = this.#outstanding;
    Object.assign(globalThis, {
      setImmediate: (run: (...given: unknown[]) => void, ...given: unknown[]): NodeJS.Immediate => {
        const one = immediate(() => {
          outstanding.delete(one);
          run(...given);
        });
        outstanding.add(one);
        return one;
      },
      clearImmediate: (one: NodeJS.Immediate | undefined): void => {
        if (one === undefined) return;
        outstanding.delete(one);
        clearRealImmediate(one);
      },
    });
  }
}
