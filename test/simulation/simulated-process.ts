import { Baton } from "../../src/client/baton.ts";
import type { Queue } from "../../src/client/queue.ts";
import type { Worker } from "../../src/client/worker.ts";
import type { Clock, Timer } from "../../src/domain/clock.ts";
import type { Engine } from "../../src/engine/port.ts";
import type { BatonEvent } from "../../src/index.ts";
import { FaultyEngine } from "./faulty-engine.ts";
import type { FaultKind, History, ProcessHappening } from "./history.ts";
import { Network } from "./network.ts";
import type { Plant } from "./planted/plant.ts";
import type { Random } from "../kit/random.ts";
import { queueOptions, type Settings } from "./settings.ts";
import { ShiftedClock } from "./shifted-clock.ts";
import type { VirtualTime } from "./virtual-time.ts";

export const QUEUE = "simulated";

export interface Surroundings {
  readonly time: VirtualTime;
  readonly history: History;
  readonly settings: Settings;
  readonly plant: Plant | undefined;
  readonly isCalm: () => boolean;
  onCrash(process: SimulatedProcess): void;
}

/** Logged without its time and its process, which are known here. */
type Logged = ProcessHappening extends infer Each
  ? Each extends ProcessHappening
    ? Omit<Each, "process">
    : never
  : never;

/**
 * A process with the real client and the real worker runtime in it.
 *
 *   living ──pause──▶ paused ──resume──▶ living      timers and replies are held back, then all come at once
 *      └────crash──▶ dead                            nothing of it has an effect any more
 */
export class SimulatedProcess {
  readonly name: string;
  readonly time: VirtualTime;
  readonly settings: Settings;
  readonly random: Random;
  readonly network: Network;
  /** As the product sees it; a planted bug may be in it. */
  readonly clock: Clock;
  readonly engine: Engine;
  readonly baton: Baton;
  readonly queue: Queue<number>;
  /** Those that were not asked to stop yet. */
  readonly workers: Set<Worker> = new Set();
  dead = false;
  handlersRunning = 0;
  readonly #surroundings: Surroundings;
  readonly #shifted: ShiftedClock;
  readonly #store: Engine;
  readonly #leases = new Map<string, number>();
  readonly #everyWorker: Worker[] = [];
  #paused = false;
  #held: (() => void)[] = [];
  #disposing = false;
  /** What is to happen in the middle of the next quick handler: left to chance, hardly anything would happen there. */
  readonly #ambushes: (() => void)[] = [];
  /** Set by the product and not yet fired. */
  readonly #timers = new Set<() => void>();

  constructor(surroundings: Surroundings, name: string, random: Random, store: Engine) {
    const { time, settings, plant } = surroundings;
    this.name = name;
    this.time = time;
    this.settings = settings;
    this.random = random;
    this.#surroundings = surroundings;
    this.#store = store;
    this.network = new Network(random.fork(), settings, () => surroundings.isCalm());
    const zero = random.between(0, 1_000_000);
    const wallShift = random.between(-5_000, 5_000);
    this.#shifted = new ShiftedClock(time, zero, wallShift, (callback) => this.deliver(callback));
    this.clock = plant?.clock?.(this.#shifted) ?? this.#shifted;
    const faulty = new FaultyEngine(store, this);
    this.engine = plant?.client?.(faulty, this.clock) ?? faulty;
    const clock: Clock = {
      wall: () => this.clock.wall(),
      monotonic: () => this.clock.monotonic(),
      setTimer: (delayMs, callback) => this.#setTimer(delayMs, callback),
    };
    const runtimeRandom = random.fork();
    this.baton = new Baton(this.engine, {
      clock,
      random: () => runtimeRandom.next(),
      onEvent: (event) => this.#tell(event),
    });
    this.queue = this.baton.queue<number>(QUEUE, queueOptions(settings));
    surroundings.history.add({ at: time.now, type: "process", process: name, detail: "begins" });
  }

  get paused(): boolean {
    return this.#paused;
  }

  get working(): boolean {
    return !this.dead && !this.#paused;
  }

  log(happening: Logged): void {
    if (this.dead) return;
    this.#surroundings.history.add({ ...happening, at: this.time.now, process: this.name });
  }

  suffer(kind: FaultKind, detail: string): void {
    this.#surroundings.history.add({ at: this.time.now, type: "fault", process: this.name, kind, detail });
  }

  /** Something from outside reaches this process: a timer is due, a reply has come. */
  deliver(callback: () => void): void {
    if (this.dead) return;
    if (this.#paused) this.#held.push(callback);
    else callback();
  }

  crash(detail: string): void {
    if (this.dead) return;
    this.suffer("crash", detail);
    this.dead = true;
    this.#held = [];
    // The store notices the broken connection some time later; until then a waiting claim may still be served.
    this.time.after(this.random.next() * this.settings.leaseMs, () => void this.#store.close());
    this.#surroundings.onCrash(this);
  }

  /** Stopped from outside, or its event loop blocked: for timers and replies that is the same. */
  pause(detail: string, forMs: number): void {
    if (!this.working) return;
    this.suffer("pause", `${detail} for ${Math.round(forMs)} ms`);
    this.#paused = true;
    this.time.after(forMs, () => this.#resume());
  }

  stepClock(byMs: number): void {
    this.suffer("clock step", `${byMs} ms`);
    this.#shifted.step(byMs);
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        timer.cancel();
        reject(signal?.reason instanceof Error ? signal.reason : new Error("The signal fired without a reason."));
      };
      const timer = this.#shifted.setTimer(delayMs, () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      });
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }

  ambush(deed: () => void): void {
    this.#ambushes.push(deed);
  }

  /** A quick handler is under way. */
  inTheMiddle(): void {
    this.#ambushes.shift()?.();
  }

  addWorker(worker: Worker): void {
    this.workers.add(worker);
    this.#everyWorker.push(worker);
  }

  noteLease(key: string, fence: number, number: number): void {
    this.#leases.set(`${key}/${fence}`, number);
  }

  leaseNumber(key: string, fence: number): number {
    const number = this.#leases.get(`${key}/${fence}`);
    if (number === undefined) throw new Error(`Process ${this.name} works under a lease that it never got.`);
    return number;
  }

  /** After the run: lets the product's workers come to an end, so that nothing of them stays in memory. */
  async dispose(): Promise<void> {
    this.dead = true;
    this.#disposing = true;
    // Whoever waits for a timer that the crash has swallowed waits no longer.
    const swallowed = [...this.#timers];
    for (const fire of swallowed) fire();
    await Promise.allSettled(this.#everyWorker.map((worker) => worker.stop({ grace: 0 })));
  }

  #resume(): void {
    if (this.dead || !this.#paused) return;
    this.suffer("resume", "");
    this.#paused = false;
    const held = this.#held;
    this.#held = [];
    // Each is an event of its own, as in a real event loop: what one leads to happens before the next.
    for (const callback of held) this.time.after(0, () => this.deliver(callback));
  }

  #setTimer(delayMs: number, callback: () => void): Timer {
    const fire = (): void => {
      if (this.#timers.delete(fire)) callback();
    };
    this.#timers.add(fire);
    if (this.#disposing) {
      queueMicrotask(fire);
      return { cancel: () => void this.#timers.delete(fire) };
    }
    // A real timer is sometimes a little late.
    const lateMs = this.random.chance(0.1) ? this.random.next() * 3 : 0;
    const timer = this.clock.setTimer(delayMs + lateMs, fire);
    return {
      cancel: () => {
        this.#timers.delete(fire);
        timer.cancel();
      },
    };
  }

  #tell(event: BatonEvent): void {
    const { key, id } = "item" in event ? event.item : { key: undefined, id: undefined };
    this.log({ type: "told", what: "why" in event ? `${event.type} (${event.why})` : event.type, key, id });
  }
}
