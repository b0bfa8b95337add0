import { Baton } from "../../../../src/client/baton.ts";
import { locksOnlyEngine } from "../../../../src/client/locks/locks-only-engine.ts";
import type { Clock, Timer } from "../../../../src/domain/clock.ts";
import { BatonError } from "../../../../src/domain/errors.ts";
import { type MemoryCells, MemoryRegister } from "../../../../src/engines/memory/register.ts";
import type { BatonEvent } from "../../../../src/index.ts";
import { locksOnRegister } from "../../../../src/locks/locks-on-register.ts";
import type { Register } from "../../../../src/locks/register.ts";
import type { Random } from "../../../kit/random.ts";
import { NetworkRegister } from "../../../locks/simulation/network-register.ts";
import { drawSettings } from "../../../locks/simulation/settings.ts";
import { ShiftedClock } from "../../../simulation/shifted-clock.ts";
import type { VirtualTime } from "../../../simulation/virtual-time.ts";
import type { Deed } from "./plan.ts";

/** How soon a store that is away is known to be. */
const AWAY_MS = 20;

/**
 * A process with the real client of locks in it, at the other end of a network.
 *
 *   living ──pause──▶ paused ──▶ living      timers and replies are held back, then all come at once
 *      └────crash──▶ dead                    nothing of it has an effect any more
 */
export class LockProcess {
  readonly name: string;
  readonly clock: ShiftedClock;
  readonly baton: Baton;
  readonly events: BatonEvent[] = [];
  isDead = false;
  isPaused = false;
  isClosing = false;
  /** The store cannot be reached. */
  isAway = false;
  outageEndsAt = 0;
  /** What it does may have taken longer than it asked for. */
  wasPaused = false;
  /** What it does at the moment. */
  readonly deeds: Set<Deed> = new Set();
  /** Timers of the product that are set and not due yet. */
  readonly timers: Set<Timer> = new Set();
  readonly #time: VirtualTime;
  #held: (() => void)[] = [];

  constructor(time: VirtualTime, cells: MemoryCells, name: string, random: Random, isTroubled: boolean) {
    this.name = name;
    this.#time = time;
    this.clock = new ShiftedClock(time, random.between(0, 1_000_000), 0, (callback) => this.deliver(callback));
    const network = new NetworkRegister(new MemoryRegister(cells), {
      time,
      random: random.fork(),
      settings: { ...drawSettings(random.fork()), leaseMs: 1_000, ttlStepMs: 1 },
      isCalm: () => !isTroubled,
      suffer: () => undefined,
      crash: () => undefined,
      stall: () => undefined,
      deliver: (callback) => this.deliver(callback),
    });
    const ids = random.fork();
    const jitter = random.fork();
    const clock: Clock = {
      wall: () => this.clock.wall(),
      monotonic: () => this.clock.monotonic(),
      setTimer: (delayMs, callback) => this.#setTimer(delayMs, callback),
    };
    const locks = locksOnRegister({
      name: "simulated",
      register: this.#withOutages(network),
      clock,
      random: () => jitter.next(),
      newId: () => `${name}.${ids.between(0, 0x7fff_ffff).toString(36)}`,
      watchesHolds: random.chance(0.5),
    });
    this.baton = new Baton(locksOnlyEngine(locks), {
      clock,
      random: () => jitter.next(),
      onEvent: (event) => void (this.isDead ? 0 : this.events.push(event)),
    });
  }

  deliver(callback: () => void): void {
    if (this.isDead) return;
    if (this.isPaused) this.#held.push(callback);
    else callback();
  }

  pause(forMs: number): void {
    if (this.isDead || this.isPaused) return;
    this.isPaused = true;
    this.#time.after(forMs, () => {
      this.isPaused = false;
      const held = this.#held;
      this.#held = [];
      for (const callback of held) this.#time.after(0, () => this.deliver(callback));
    });
  }

  crash(): void {
    this.isDead = true;
    this.#held = [];
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

  #withOutages(inner: Register): Register {
    const call = async <T>(what: string, ask: () => Promise<T>): Promise<T> => {
      if (!this.isAway) return await ask();
      await this.sleep(AWAY_MS);
      throw new BatonError("STORE_UNAVAILABLE", `No answer to ${what}.`);
    };
    return {
      read: (name) => call("a read", () => inner.read(name)),
      write: (request) => call("a write", () => inner.write(request)),
      watch: (name, changed) => call("a watch", () => inner.watch(name, changed)),
      listen: (name, told) => call("listening", () => inner.listen(name, told)),
      list: (prefix) => call("a list", () => inner.list(prefix)),
      close: () => inner.close(),
    };
  }
}
