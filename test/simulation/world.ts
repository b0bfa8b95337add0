import type { Engine } from "../../src/engine/port.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import { Cast } from "./cast.ts";
import { History, type LastWords } from "./history.ts";
import { planFaults } from "./planned-faults.ts";
import { PlannedWork } from "./planned-work.ts";
import type { MakePlant } from "./planted/plant.ts";
import { Random } from "../kit/random.ts";
import { Numbers } from "./recording-engine.ts";
import type { RunParts } from "./run-parts.ts";
import { drawSettings, type Settings } from "./settings.ts";
import { ShiftedClock } from "./shifted-clock.ts";
import { QUEUE, type SimulatedProcess } from "./simulated-process.ts";
import { VirtualTime } from "./virtual-time.ts";

/**
 * Virtual time after the last fault in which everything must have come to its end: a store's clock that was set back
 * three times by half a minute, and then the longest line of failing items.
 */
const DRAIN_LIMIT_MS = 300_000;
/** A run that needs more events than this goes in circles: most need a few hundred. */
const MOST_EVENTS = 5_000;

/**
 * One run: some processes, one store, one seed.
 *
 *   trouble ──troubleMs──▶ calm (no more faults; a fresh worker) ──nothing left──▶ closing ──▶ over
 */
export class World {
  readonly seed: number;
  readonly settings: Settings;
  readonly history: History = new History();
  readonly time: VirtualTime = new VirtualTime();
  readonly #parts: RunParts;
  readonly #work: PlannedWork;
  readonly #cast: Cast;
  #phase: "trouble" | "calm" | "closing" | "over" = "trouble";
  #events = 0;
  #drained = false;
  #inspector: Engine | undefined;

  constructor(seed: number, makePlant?: MakePlant) {
    const random = new Random(seed);
    const { time, history } = this;
    const settings = drawSettings(random.fork());
    const storeClock = new ShiftedClock(time, 5_000_000, 0, (callback) => callback());
    const plant = makePlant?.({ time, random: random.fork() });
    const store = new MemoryStore({ clock: plant?.storeClock?.(storeClock) ?? storeClock });
    const isCalm = (): boolean => this.#phase !== "trouble";
    this.seed = seed;
    this.settings = settings;
    this.#parts = { settings, time, history, random, numbers: new Numbers(), store, storeClock, plant, isCalm };
    const work = new PlannedWork(this.#parts);
    const cast = new Cast(this.#parts, (token) => work.planOf(token));
    this.#work = work;
    this.#cast = cast;
    for (let count = 0; count < settings.processes; count += 1) {
      time.after(random.next() * 50, () => cast.startAnother());
    }
    work.plan(cast);
    planFaults(this.#parts, cast);
    time.after(settings.troubleMs, () => this.#calmDown());
  }

  get over(): boolean {
    return this.#phase === "over";
  }

  get surprise(): unknown {
    return this.#cast.surprise;
  }

  get events(): number {
    return this.#events;
  }

  /** One event. What follows from it happens before the next call. */
  step(): void {
    this.#events += 1;
    if (!this.time.step() || this.#events > MOST_EVENTS) this.#phase = "over";
  }

  /** Asks the store for its last words, and clears away the processes. */
  async conclude(): Promise<LastWords> {
    const store = await this.#inspect();
    const [report] = await store.queues({ queue: QUEUE });
    const keys = await store.keys({ queue: QUEUE, limit: 1_000 });
    const dead = await store.dead({ queue: QUEUE, limit: 1_000 });
    const items = new Map<string, { found: string | undefined; outcome: string | undefined }>();
    const asked = AbortSignal.abort();
    for (const id of new Set(this.#work.ids)) {
      const found = await store.find({ queue: QUEUE, id });
      const outcome = await store.outcome({ queue: QUEUE, id, signal: asked });
      items.set(id, { found: found?.state, outcome: outcome?.state });
    }
    const unfinished = this.#cast.openBusiness;
    await this.#cast.dispose();
    return {
      drained: this.#drained,
      counts: {
        waiting: report?.waiting ?? 0,
        delayed: report?.delayed ?? 0,
        running: report?.running ?? 0,
        dead: report?.dead ?? 0,
      },
      keys: keys.map(({ key, state }) => `${key} (${state})`),
      dead: dead.map(({ id }) => id),
      items,
      unfinished,
    };
  }

  #calmDown(): void {
    const { time, settings } = this;
    this.#phase = "calm";
    this.history.add({ at: time.now, type: "calm" });
    for (const process of this.#cast.living) process.network.partitioned = false;
    const process = this.#cast.start(4);
    this.#cast.begin(this.#resumeAll(process));
    // A pause that was slow on its way may still arrive; slow is one and a half leases at most.
    time.after(settings.leaseMs * 4, () => this.#cast.begin(this.#resumeAll(process)));
    const until = time.now + DRAIN_LIMIT_MS;
    // Not before everything that was under way has arrived: pauses end, slow and repeated requests, submissions made anew.
    time.after(settings.leaseMs * 8, () => this.#lookForTheEnd(until));
  }

  async #resumeAll(process: SimulatedProcess): Promise<void> {
    await process.queue.resume();
    for (const key of this.settings.keys) await process.queue.resume(key);
  }

  #lookForTheEnd(until: number): void {
    this.time.after(500, () => {
      if (this.#phase === "calm") this.#cast.begin(this.#look(until));
    });
  }

  async #look(until: number): Promise<void> {
    this.#drained = await this.#isDrained();
    if (this.#drained || this.time.now > until) this.#close();
    else this.#lookForTheEnd(until);
  }

  async #isDrained(): Promise<boolean> {
    const store = await this.#inspect();
    const [report] = await store.queues({ queue: QUEUE });
    const left = report === undefined ? 0 : report.waiting + report.delayed + report.running;
    const keys = await store.keys({ queue: QUEUE, limit: 1 });
    const idle = this.#cast.living.every((process) => process.handlersRunning === 0 && !process.paused);
    return idle && left === 0 && keys.length === 0 && this.#cast.openBusiness.length === 0;
  }

  /** Everybody stops in good order; what is still open after that is named in the last words. */
  #close(): void {
    this.#phase = "closing";
    const end = (): void => {
      this.#phase = "over";
    };
    const giveUp = this.time.after(60_000, end);
    const stopped = this.#cast.stopAll(100).then(() => {
      giveUp.cancel();
      // One more look at what comes late: repeated requests, replies on their way.
      this.time.after(this.settings.leaseMs * 3, end);
    });
    this.#cast.begin(stopped);
  }

  async #inspect(): Promise<Engine> {
    if (this.#inspector === undefined) {
      this.#inspector = this.#parts.store.connect();
      await this.#inspector.declare({ queue: QUEUE, levels: this.settings.levels });
    }
    return this.#inspector;
  }
}
