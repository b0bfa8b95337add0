import { MemoryStore } from "../../src/engines/memory/index.ts";
import type { Engine } from "../../src/engine/port.ts";
import { History, type LastWords } from "./history.ts";
import { holdForAWhile } from "./holding.ts";
import type { MakePlant, Plant } from "./planted/plant.ts";
import { drawItemPlan, drawSubmission, type ItemPlan, type SubmissionPlan } from "./plans.ts";
import { Random } from "./random.ts";
import { Numbers, RecordingEngine } from "./recording-engine.ts";
import { drawSettings, type Settings } from "./settings.ts";
import { ShiftedClock } from "./shifted-clock.ts";
import { simulatedHandler } from "./simulated-handler.ts";
import { QUEUE, SimulatedProcess } from "./simulated-process.ts";
import { submitOnce } from "./submitting.ts";
import { VirtualTime } from "./virtual-time.ts";
import { Receipt } from "../../src/client/receipt.ts";
import type { Worker } from "../../src/client/worker.ts";
import { OutcomeUnknown } from "../../src/domain/errors.ts";

/** Virtual time after the last fault in which everything must have come to its end. */
const DRAIN_LIMIT_MS = 900_000;
/** A run that needs more events than this goes in circles: most need a few hundred. */
const MOST_EVENTS = 5_000;
const MOST_PROCESSES = 12;

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
  readonly #random: Random;
  readonly #numbers = new Numbers();
  readonly #storeClock: ShiftedClock;
  readonly #store: MemoryStore;
  readonly #plant: Plant | undefined;
  readonly #processes: SimulatedProcess[] = [];
  readonly #itemPlans = new Map<number, ItemPlan>();
  readonly #ids: string[] = [];
  readonly #unfinished = new Map<string, SimulatedProcess>();
  #phase: "trouble" | "calm" | "closing" | "over" = "trouble";
  #events = 0;
  #drained = false;
  #inspector: Engine | undefined;
  #surprise: unknown;

  constructor(seed: number, makePlant?: MakePlant) {
    this.seed = seed;
    this.#random = new Random(seed);
    this.settings = drawSettings(this.#random.fork());
    this.#storeClock = new ShiftedClock(this.time, 5_000_000, 0, (callback) => callback());
    this.#plant = makePlant?.({ time: this.time, random: this.#random.fork() });
    this.#store = new MemoryStore({ clock: this.#plant?.storeClock?.(this.#storeClock) ?? this.#storeClock });
    for (let count = 0; count < this.settings.processes; count += 1) {
      this.time.after(this.#random.next() * 50, () => this.#startAnother());
    }
    this.#planWork();
    this.#planFaults();
    this.time.after(this.settings.troubleMs, () => this.#calmDown());
  }

  get over(): boolean {
    return this.#phase === "over";
  }

  /** Something happened that neither the product nor the simulation foresaw. */
  get surprise(): unknown {
    return this.#surprise;
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
    for (const id of new Set(this.#ids)) {
      const found = await store.find({ queue: QUEUE, id });
      const outcome = await store.outcome({ queue: QUEUE, id, signal: asked });
      items.set(id, { found: found?.state, outcome: outcome?.state });
    }
    const unfinished = this.#openBusiness();
    for (const process of this.#processes) await process.dispose();
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

  /** What somebody who lives has begun and not ended. */
  #openBusiness(): string[] {
    return [...this.#unfinished].filter(([, process]) => !process.dead).map(([what]) => what);
  }

  #isCalm(): boolean {
    return this.#phase !== "trouble";
  }

  /** Somebody watches over the processes and replaces those that crash, but not without end. */
  #startAnother(): void {
    if (this.#processes.length < MOST_PROCESSES) this.#startProcess(this.#random.between(1, 4));
  }

  #startProcess(concurrency: number): SimulatedProcess {
    const name = `p${this.#processes.length + 1}`;
    const process = new SimulatedProcess(
      {
        time: this.time,
        history: this.history,
        settings: this.settings,
        plant: this.#plant,
        isCalm: () => this.#isCalm(),
        onCrash: () =>
          void this.time.after(this.#random.next() * this.settings.leaseMs * 2, () => this.#startAnother()),
      },
      name,
      this.#random.fork(),
      this.#connect(name),
    );
    this.#processes.push(process);
    this.#startWorker(process, concurrency);
    return process;
  }

  #connect(name: string): Engine {
    const handle = this.#store.connect();
    const recording = {
      time: this.time,
      history: this.history,
      numbers: this.#numbers,
      storeClock: this.#storeClock,
    };
    return new RecordingEngine(this.#plant?.store?.(handle) ?? handle, recording, name);
  }

  #startWorker(process: SimulatedProcess, concurrency: number): void {
    if (process.dead) return;
    const { timeoutMs } = this.settings;
    const handler = simulatedHandler(
      process,
      (token) => this.#itemPlan(token),
      () => this.#isCalm(),
    );
    const worker = process.queue.work(handler, {
      concurrency,
      name: `${process.name}/${this.#numbers.next()}`,
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    });
    process.addWorker(worker);
    worker.stopped.catch((error: unknown) => {
      // It could not even start: the declaration was lost. Whoever runs a service starts it again.
      process.workers.delete(worker);
      if (!(error instanceof OutcomeUnknown)) this.#surprise = error;
      this.time.after(50, () => this.#startWorker(process, concurrency));
    });
  }

  #itemPlan(token: number): ItemPlan {
    const plan = this.#itemPlans.get(token);
    if (plan === undefined) throw new Error(`A handler got token ${token}, which nobody submitted.`);
    return plan;
  }

  #planWork(): void {
    const random = this.#random.fork();
    const { settings } = this;
    const sometime = (work: (process: SimulatedProcess) => Promise<void> | void): void =>
      this.#sometime(random, settings.troubleMs * 0.9, work);
    for (let token = 1; token <= settings.submissions;) {
      const batch: SubmissionPlan[] = [];
      for (let left = random.chance(0.15) ? random.between(2, 4) : 1; left > 0; left -= 1) {
        batch.push(drawSubmission(random, settings, token));
        this.#itemPlans.set(token, drawItemPlan(random));
        token += 1;
      }
      sometime((process) => this.#submit(process, batch));
    }
    for (let count = random.between(0, 3); count > 0; count -= 1) {
      sometime(async (process) => {
        if (this.#ids.length > 0) await process.queue.cancel(random.pick(this.#ids));
      });
    }
    for (let count = random.between(-1, 3); count > 0; count -= 1) {
      const key = random.pick(settings.keys);
      sometime((process) => holdForAWhile(process, key));
    }
    for (let count = random.between(-1, 2); count > 0; count -= 1) {
      const key = random.chance(0.7) ? random.pick(settings.keys) : undefined;
      sometime((process) => process.queue.pause(key));
      sometime((process) => process.queue.resume(key));
    }
  }

  #planFaults(): void {
    const random = this.#random.fork();
    const { faults, leaseMs, troubleMs } = this.settings;
    const often = (count: number, work: (process: SimulatedProcess) => Promise<void> | void): void => {
      for (let left = count; left > 0; left -= 1) this.#sometime(random, troubleMs, work);
    };
    often(faults.crashes, (process) => process.crash("killed"));
    often(faults.pauses, (process) => process.pause("stopped", leaseMs * (1.5 + random.next() * 1.5)));
    often(faults.partitions, (process) => this.#partition(process, leaseMs * random.next() * 2));
    often(faults.processClockSteps, (process) => process.stepClock(random.between(-30_000, 30_000)));
    often(faults.storeClockSteps, () => {
      const byMs = random.between(-30_000, 30_000);
      this.history.add({
        at: this.time.now,
        type: "fault",
        process: "store",
        kind: "clock step",
        detail: `${byMs} ms`,
      });
      this.#storeClock.step(byMs);
    });
    often(faults.stops, (process) => this.#stopGracefully(process, random));
  }

  /** At some moment of the trouble, in some process that lives then. */
  #sometime(random: Random, withinMs: number, work: (process: SimulatedProcess) => Promise<void> | void): void {
    this.time.after(random.next() * withinMs, () => {
      const working = this.#processes.filter((process) => process.working);
      if (working.length > 0) this.#begin(work(random.pick(working)));
    });
  }

  /** An answer that was lost is part of the game; anything else is not. */
  #begin(work: Promise<void> | void): void {
    work?.catch((error: unknown) => {
      if (!(error instanceof OutcomeUnknown)) this.#surprise = error;
    });
  }

  async #submit(process: SimulatedProcess, plans: readonly SubmissionPlan[]): Promise<void> {
    for (const { id } of plans) if (id !== undefined) this.#ids.push(id);
    const call = `submission ${this.#numbers.next()}`;
    this.#unfinished.set(call, process);
    const submitted = await submitOnce(process, plans, this.#numbers);
    this.#unfinished.delete(call);
    const unknown: SubmissionPlan[] = [];
    for (const { plan, result } of submitted) {
      if (result === undefined && plan.id !== undefined) unknown.push(plan);
      if (!(result instanceof Receipt)) continue;
      if (plan.id === undefined && this.settings.historyMs > 0) this.#ids.push(result.id);
      if (plan.id !== undefined && this.#random.chance(0.2)) this.#begin(this.#awaitOutcome(process, result));
    }
    if (unknown.length === 0) return;
    // With an id it is safe to submit again, from here or from elsewhere.
    this.time.after(this.#random.next() * this.settings.leaseMs, () => {
      const here = process.working && this.#random.chance(0.5);
      const next = here ? process : this.#processes.find((other) => other.working);
      if (next !== undefined) this.#begin(this.#submit(next, unknown));
    });
  }

  async #awaitOutcome(process: SimulatedProcess, receipt: Receipt): Promise<void> {
    const { state } = await receipt.outcome();
    process.log({ type: "outcome", id: receipt.id, state });
  }

  #partition(process: SimulatedProcess, forMs: number): void {
    process.suffer("partition", `for ${Math.round(forMs)} ms`);
    process.network.partitioned = true;
    this.time.after(forMs, () => {
      process.network.partitioned = false;
      process.suffer("heal", "");
    });
  }

  async #stopGracefully(process: SimulatedProcess, random: Random): Promise<void> {
    const [worker] = process.workers;
    if (worker === undefined) return;
    const graceMs = random.between(0, this.settings.leaseMs);
    await this.#stop(process, worker, graceMs, random.chance(0.2) ? random.between(0, graceMs) : undefined);
    if (random.chance(0.5)) this.#startWorker(process, random.between(1, 4));
  }

  async #stop(process: SimulatedProcess, worker: Worker, graceMs: number, secondGraceMs?: number): Promise<void> {
    process.workers.delete(worker);
    process.log({ type: "stop", worker: worker.name, graceMs });
    this.#unfinished.set(`stop of ${worker.name}`, process);
    const stopping = worker.stop({ grace: graceMs });
    if (secondGraceMs !== undefined) void worker.stop({ grace: secondGraceMs });
    const { abandoned } = await stopping;
    this.#unfinished.delete(`stop of ${worker.name}`);
    process.log({ type: "stopped", worker: worker.name, abandoned });
  }

  #calmDown(): void {
    this.#phase = "calm";
    this.history.add({ at: this.time.now, type: "calm" });
    for (const process of this.#processes) process.network.partitioned = false;
    const process = this.#startProcess(4);
    this.#begin(this.#resumeAll(process));
    // A pause that was slow on its way may still arrive; slow is one and a half leases at most.
    this.time.after(this.settings.leaseMs * 4, () => this.#begin(this.#resumeAll(process)));
    const until = this.time.now + DRAIN_LIMIT_MS;
    // Not before everything that was under way has arrived: pauses end, slow and repeated requests, submissions made anew.
    this.time.after(this.settings.leaseMs * 8, () => this.#lookForTheEnd(until));
  }

  async #resumeAll(process: SimulatedProcess): Promise<void> {
    await process.queue.resume();
    for (const key of this.settings.keys) await process.queue.resume(key);
  }

  #lookForTheEnd(until: number): void {
    this.time.after(500, () => {
      if (this.#phase !== "calm") return;
      this.#begin(
        this.#isDrained().then((drained) => {
          this.#drained = drained;
          if (drained || this.time.now > until) this.#close();
          else this.#lookForTheEnd(until);
        }),
      );
    });
  }

  async #isDrained(): Promise<boolean> {
    const store = await this.#inspect();
    const [report] = await store.queues({ queue: QUEUE });
    const left = report === undefined ? 0 : report.waiting + report.delayed + report.running;
    const keys = await store.keys({ queue: QUEUE, limit: 1 });
    const living = this.#processes.filter((process) => !process.dead);
    const idle = living.every((process) => process.handlersRunning === 0 && !process.paused);
    return idle && left === 0 && keys.length === 0 && this.#openBusiness().length === 0;
  }

  /** Everybody stops in good order; what is still open after that is named in the last words. */
  #close(): void {
    this.#phase = "closing";
    const living = this.#processes.filter((process) => !process.dead);
    const stops = living.flatMap((process) => [...process.workers].map((worker) => this.#stop(process, worker, 100)));
    const end = (): void => {
      this.#phase = "over";
    };
    const giveUp = this.time.after(60_000, end);
    this.#begin(
      Promise.all(stops).then(() => {
        giveUp.cancel();
        // One more look at what comes late: repeated requests, replies on their way.
        this.time.after(this.settings.leaseMs * 3, end);
      }),
    );
  }

  async #inspect(): Promise<Engine> {
    if (this.#inspector === undefined) {
      this.#inspector = this.#store.connect();
      await this.#inspector.declare({ queue: QUEUE, levels: this.settings.levels });
    }
    return this.#inspector;
  }
}
