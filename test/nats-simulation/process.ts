/** One process: an engine on a connection and clocks of its own, that can be stopped, cut off and killed. */
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import type { Engine } from "../../src/engine/port.ts";
import type { Wire } from "../../src/engines/nats/wire.ts";
import type { Connection } from "../jetstream/connection.ts";
import type { LineFaults } from "../jetstream/faults.ts";
import type { SimulatedServer } from "../jetstream/server.ts";
import type { Random } from "../kit/random.ts";
import { ShiftedClock } from "../simulation/shifted-clock.ts";
import type { VirtualTime } from "../simulation/virtual-time.ts";
import type { Plant } from "./planted.ts";

export const QUEUE = "q";
export const LEVELS: readonly string[] = ["high", "normal", "low"];

export interface ProcessParts {
  readonly name: string;
  readonly time: VirtualTime;
  readonly server: SimulatedServer;
  readonly random: Random;
  readonly faults: LineFaults;
  readonly replicas: number;
  readonly together: boolean;
  readonly wallShiftMs: number;
  readonly plant: Plant | undefined;
}

export class NatsProcess {
  readonly name: string;
  readonly random: Random;
  readonly clock: ShiftedClock;
  readonly connection: Connection;
  readonly engine: Engine;
  readonly #time: VirtualTime;
  readonly #zero: number;
  /** What reached the process while it was stopped. */
  readonly #held: (() => void)[] = [];
  #state: "runs" | "stopped" | "wakes" | "dead" = "runs";
  /** Handlers that work, or believe so. */
  busy = 0;

  constructor({ name, time, server, random, faults, replicas, together, wallShiftMs, plant }: ProcessParts) {
    this.name = name;
    this.random = random;
    this.#time = time;
    this.#zero = random.between(1, 1_000_000);
    const hand = (callback: () => void): void => this.#hand(callback);
    this.clock = new ShiftedClock(time, this.#zero, wallShiftMs, hand);
    this.connection = server.connect({ faults, hand });
    const wire: Wire = plant?.wire?.(this.connection) ?? this.connection;
    const engine = new NatsEngine({
      wire,
      clock: this.clock,
      name: `${name}abcdefghijklmno`,
      random: () => random.next(),
      options: { replicas, ...(together ? { sync: "always" } : {}) },
      fewestTogether: 1,
    });
    this.engine = plant?.engine?.(engine) ?? engine;
  }

  get dead(): boolean {
    return this.#state === "dead";
  }

  get stopped(): boolean {
    return this.#state === "stopped" || this.#state === "wakes";
  }

  /** When this process read its monotonic clock like this. */
  trueTime(monotonic: number): number {
    return monotonic - this.#zero;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.setTimer(ms, resolve);
    });
  }

  kill(sent: "lost" | "arrives", serverNoticesMs = 0): void {
    if (this.dead) return;
    this.#state = "dead";
    this.#held.length = 0;
    this.connection.kill({ sent, serverNoticesMs });
  }

  /** Time passes it by. */
  stop(): void {
    if (this.#state === "runs") this.#state = "stopped";
  }

  goOn(): void {
    if (this.#state !== "stopped") return;
    this.#state = "wakes";
    this.#wake();
  }

  /** What it missed comes one after the other, as from an event loop: what follows from one happens before the next. */
  #wake(): void {
    this.#time.after(0, () => {
      if (this.#state !== "wakes") return;
      const next = this.#held.shift();
      if (next === undefined) {
        this.#state = "runs";
        return;
      }
      next();
      this.#wake();
    });
  }

  #hand(callback: () => void): void {
    if (this.#state === "runs") callback();
    else if (this.#state !== "dead") this.#held.push(callback);
  }
}
