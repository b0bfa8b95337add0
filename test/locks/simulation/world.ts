import { MemoryCells, MemoryRegister } from "../../../src/engines/memory/register.ts";
import type { AcquireResult, Session } from "../../../src/locks/port.ts";
import { Random } from "../../kit/random.ts";
import { ShiftedClock } from "../../simulation/shifted-clock.ts";
import { VirtualTime } from "../../simulation/virtual-time.ts";
import type { Happening } from "./history.ts";
import type { MakePlant } from "./planted.ts";
import { SimulatedProcess, type Surroundings, type Unstamped } from "./process.ts";
import { drawSettings, type Settings } from "./settings.ts";

/** Time after the last fault in which everybody must have done what it planned: all holds one after the other. */
const LONGEST_CALM_MS = 600_000;
/** A run that needs more events than this goes in circles: most need a thousand. */
const MOST_EVENTS = 60_000;

/**
 * One run: some processes, one store, one seed.
 *
 *   trouble ──▶ calm (no more faults) ──▶ settled (the dead have run out; newcomers) ──all done──▶ closing ──▶ last try ──▶ over
 */
export class World {
  readonly seed: number;
  readonly settings: Settings;
  readonly history: Happening[] = [];
  readonly settledAt: number;
  readonly #time = new VirtualTime();
  readonly #random: Random;
  readonly #cells: MemoryCells;
  readonly #processes: SimulatedProcess[] = [];
  readonly #surroundings: Surroundings;
  #phase: "trouble" | "calm" | "over" = "trouble";
  #started = 0;
  #calls = 0;
  #events = 0;

  constructor(seed: number, makePlant?: MakePlant) {
    const random = new Random(seed);
    const time = this.#time;
    this.seed = seed;
    this.#random = random;
    this.settings = drawSettings(random.fork());
    const { settings } = this;
    // Drawn in any case: a bug must not change what else happens.
    const plantRandom = random.fork();
    const plant = makePlant?.({ time, random: plantRandom });
    const storeClock = new ShiftedClock(time, 5_000_000, 0, (callback) => callback());
    this.#cells = new MemoryCells(storeClock);
    this.settledAt =
      settings.troubleMs + 3 * Math.max(settings.leaseMs, settings.ttlStepMs) + 2 * settings.longestDelayMs + 1_000;
    this.#surroundings = {
      time,
      settings,
      plant,
      store: () => new MemoryRegister(this.#cells),
      isCalm: () => this.#phase !== "trouble",
      nextCall: () => (this.#calls += 1),
      log: (happening) => this.#log(happening),
    };
    for (let count = 0; count < settings.processes; count += 1) this.#start(random.next() * settings.leaseMs);
    this.#planFaults();
    time.after(settings.troubleMs, () => {
      this.#phase = "calm";
      this.#log({ type: "calm" });
    });
    time.after(this.settledAt, () => {
      this.#start(0);
      this.#start(0);
      this.#lookForTheEnd();
    });
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** One event. What follows from it happens before the next call. */
  step(): void {
    this.#events += 1;
    if (this.#time.step() && this.#events < MOST_EVENTS) return;
    if (!this.isOver) this.#log({ type: "surprise", says: `it is not over after ${this.#events} events` });
    this.#phase = "over";
  }

  #start(afterMs: number): void {
    this.#started += 1;
    const name = `p${this.#started}`;
    const random = this.#random.fork();
    this.#time.after(afterMs, () => {
      const process = new SimulatedProcess(this.#surroundings, name, random);
      this.#processes.push(process);
      void process.play();
    });
  }

  #planFaults(): void {
    const { rates, troubleMs, leaseMs } = this.settings;
    const random = this.#random.fork();
    for (let at = 500; at < troubleMs; at += 1_000) {
      this.#time.after(at + random.next() * 500, () => {
        for (const process of this.#processes.filter(({ isDead }) => !isDead)) {
          if (random.chance(rates.clockStep)) process.stepClock(random.pick([-30_000, -1_000, 1_000, 30_000]));
          // A pause ends before the calm has settled.
          if (random.chance(rates.pause)) process.pause(random.next() * leaseMs * 2.5);
          if (random.chance(rates.crash)) {
            process.crash();
            if (random.chance(0.7)) this.#start(random.next() * leaseMs);
          }
        }
      });
    }
  }

  #lookForTheEnd(): void {
    this.#time.after(1_000, () => {
      const living = this.#processes.filter(({ isDead }) => !isDead);
      const isLate = this.#time.now > this.settledAt + LONGEST_CALM_MS;
      if (!isLate && living.some(({ isDone }) => !isDone)) return this.#lookForTheEnd();
      for (const call of living.flatMap(({ open }) => [...open])) this.#log({ type: "unanswered", call });
      // Two signs of life sweep up what lost replies have left.
      this.#time.after(this.settings.leaseMs * 2, () => void this.#close(living));
    });
  }

  async #close(living: readonly SimulatedProcess[]): Promise<void> {
    const { leaseMs, ttlStepMs, longestDelayMs, longestRetireMs } = this.settings;
    this.#noteWhatIsLeft(living);
    await Promise.all(living.map((process) => process.close().catch((error: unknown) => this.#surprise(error))));
    const restMs = leaseMs + ttlStepMs + longestDelayMs + longestRetireMs + 60_000;
    this.#time.after(restMs, () => void this.#tryAll().catch((error: unknown) => this.#surprise(error)));
  }

  /** Holders and waiters in the store whose sessions live though nobody is left who asks. */
  #noteWhatIsLeft(living: readonly SimulatedProcess[]): void {
    const sessions = new Set(living.flatMap(({ life }) => (life?.isOver === false ? [life.session.id] : [])));
    for (const { name, value } of this.#cells.list("lock/")) {
      const record = JSON.parse(value) as { holders: Place[]; waiters: Place[] };
      for (const { session, fence } of [...record.holders, ...record.waiters]) {
        if (sessions.has(session)) this.#log({ type: "left", lock: name, session, fence });
      }
    }
  }

  async #tryAll(): Promise<void> {
    const newcomer = new SimulatedProcess(this.#surroundings, "newcomer", this.#random.fork());
    const session = await newcomer.locks.openSession({
      owner: "newcomer",
      leaseMs: 600_000,
      expiry: "release",
    });
    for (const [name, slots] of this.settings.locks) {
      // All slots at once: those who vanished are buried only when their slots are wanted.
      const holds = [];
      for (let slot = 0; slot < slots; slot += 1) {
        const result = await this.#tryOne(newcomer, session, name, slots);
        this.#log({ type: "last try", lock: name, isGranted: result.ok });
        if (result.ok) holds.push(result.hold);
      }
      for (const hold of holds) await newcomer.locks.release({ hold });
    }
    await newcomer.locks.closeSession(session);
    await newcomer.locks.close();
    this.#log({ type: "last cells", names: this.#cells.list("").map(({ name }) => name) });
    this.#phase = "over";
  }

  async #tryOne(newcomer: SimulatedProcess, session: Session, name: string, slots: number): Promise<AcquireResult> {
    const request = { session, name, slots, delayAfterLossMs: 0, signal: AbortSignal.abort() };
    const result = await newcomer.locks.acquire(request);
    if (result.ok || result.why !== "delayed") return result;
    // A lock whose holder vanished, and that nobody has asked for since, has begun its delay now.
    await new Promise<void>((resolve) => this.#time.after(this.settings.longestDelayMs + 1, resolve));
    return await newcomer.locks.acquire(request);
  }

  #surprise(error: unknown): void {
    this.#log({ type: "surprise", says: String(error) });
    this.#phase = "over";
  }

  #log(happening: Unstamped): void {
    this.history.push({ ...happening, at: this.#time.now });
  }
}

interface Place {
  readonly session: string;
  readonly fence?: number;
}
