import type { Worker } from "../../src/client/worker.ts";
import { OutcomeUnknown } from "../../src/domain/errors.ts";
import type { Engine } from "../../src/engine/port.ts";
import type { ItemPlan } from "./plans.ts";
import type { Random } from "../kit/random.ts";
import { RecordingEngine } from "./recording-engine.ts";
import type { RunParts } from "./run-parts.ts";
import { simulatedHandler } from "./simulated-handler.ts";
import { SimulatedProcess } from "./simulated-process.ts";

const MOST_PROCESSES = 12;

/** Something that a process does. */
export type Deed = (process: SimulatedProcess) => Promise<void> | void;

/** The processes of one run: they begin, do things, are stopped in good order, and are replaced when they crash. */
export class Cast {
  readonly #parts: RunParts;
  readonly #planOf: (token: number) => ItemPlan;
  readonly #processes: SimulatedProcess[] = [];
  readonly #open = new Map<string, SimulatedProcess>();
  #surprise: unknown;

  constructor(parts: RunParts, planOf: (token: number) => ItemPlan) {
    this.#parts = parts;
    this.#planOf = planOf;
  }

  get living(): readonly SimulatedProcess[] {
    return this.#processes.filter((process) => !process.dead);
  }

  get working(): readonly SimulatedProcess[] {
    return this.#processes.filter((process) => process.working);
  }

  /** What somebody who lives has begun and not ended. */
  get openBusiness(): readonly string[] {
    return [...this.#open].filter(([, process]) => !process.dead).map(([what]) => what);
  }

  /** Something happened that neither the product nor the simulation foresaw. */
  get surprise(): unknown {
    return this.#surprise;
  }

  /** Somebody watches over the processes and replaces those that crash, but not without end. */
  startAnother(): void {
    if (this.#processes.length < MOST_PROCESSES) this.start(this.#parts.random.between(1, 6));
  }

  start(concurrency: number): SimulatedProcess {
    const { time, random, settings } = this.#parts;
    const name = `p${this.#processes.length + 1}`;
    const onCrash = (): void => void time.after(random.next() * settings.leaseMs * 2, () => this.startAnother());
    const surroundings = { ...this.#parts, onCrash };
    const process = new SimulatedProcess(surroundings, name, random.fork(), this.#connect(name));
    this.#processes.push(process);
    this.#startWorker(process, concurrency);
    return process;
  }

  /** At some moment, in some process that works then; or there as soon as it works on something quick. */
  sometime(random: Random, withinMs: number, deed: Deed): void {
    this.#parts.time.after(random.next() * withinMs, () => {
      const { working } = this;
      if (working.length === 0) return;
      const process = random.pick(working);
      // It may be too late for it by then.
      const strike = (): void => {
        if (!this.#parts.isCalm()) this.begin(deed(process));
      };
      if (this.#parts.settings.quick > 0 && random.chance(0.4)) process.ambush(strike);
      else strike();
    });
  }

  /** An answer that was lost is part of the game; anything else is not. */
  begin(work: Promise<void> | void): void {
    work?.catch((error: unknown) => {
      if (!(error instanceof OutcomeUnknown)) this.#surprise = error;
    });
  }

  /** Business that a process which lives must bring to its end. */
  async untilDone<T>(what: string, process: SimulatedProcess, work: Promise<T>): Promise<T> {
    this.#open.set(what, process);
    const result = await work;
    this.#open.delete(what);
    return result;
  }

  async stopAndPerhapsGoOn(process: SimulatedProcess, random: Random): Promise<void> {
    const [worker] = process.workers;
    if (worker === undefined) return;
    const graceMs = random.between(0, this.#parts.settings.leaseMs);
    await this.#stop(process, worker, graceMs, random.chance(0.2) ? random.between(0, graceMs) : undefined);
    if (random.chance(0.5)) this.#startWorker(process, random.between(1, 4));
  }

  async stopAll(graceMs: number): Promise<void> {
    const stops = this.living.flatMap((process) =>
      [...process.workers].map((worker) => this.#stop(process, worker, graceMs)),
    );
    await Promise.all(stops);
  }

  async dispose(): Promise<void> {
    for (const process of this.#processes) await process.dispose();
  }

  async #stop(process: SimulatedProcess, worker: Worker, graceMs: number, secondGraceMs?: number): Promise<void> {
    process.workers.delete(worker);
    process.log({ type: "stop", worker: worker.name, graceMs });
    const stopping = worker.stop({ grace: graceMs });
    if (secondGraceMs !== undefined) void worker.stop({ grace: secondGraceMs });
    const { abandoned } = await this.untilDone(`stop of ${worker.name}`, process, stopping);
    process.log({ type: "stopped", worker: worker.name, abandoned });
  }

  #startWorker(process: SimulatedProcess, concurrency: number): void {
    if (process.dead) return;
    const { settings, numbers, time, isCalm } = this.#parts;
    const { timeoutMs } = settings;
    const worker = process.queue.work(simulatedHandler(process, this.#planOf, isCalm), {
      concurrency,
      name: `${process.name}/${numbers.next()}`,
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    });
    process.addWorker(worker);
    worker.stopped.catch((error: unknown) => {
      // It could not even start: the declaration was lost. Whoever runs a service starts it again.
      process.workers.delete(worker);
      if (!(error instanceof OutcomeUnknown)) this.#surprise = error;
      time.after(50, () => this.#startWorker(process, concurrency));
    });
  }

  #connect(name: string): Engine {
    const { store, plant } = this.#parts;
    const handle = store.connect();
    return new RecordingEngine(plant?.store?.(handle) ?? handle, this.#parts, name);
  }
}
