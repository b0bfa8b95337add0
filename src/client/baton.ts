import { type Clock, systemClock } from "../domain/clock.ts";
import { checkQueueName } from "../domain/names.ts";
import { parseQueueOptions, type QueueOptions } from "../domain/settings.ts";
import type { Engine, Finding, QueueReport } from "../engine/port.ts";
import { describeWarning, type WorkerEvent } from "../worker/events.ts";
import { Queue } from "./queue.ts";
import type { Shared } from "./shared.ts";
import type { StopOptions } from "./worker.ts";

export interface BatonOptions {
  /** Hears what workers have to tell. Without it, warnings go to `process.emitWarning`. */
  readonly onEvent?: (event: WorkerEvent) => void;
  /** For simulations and tests. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** A connection to a store. Close it when done: `await using baton = await connect(…)` does. */
export class Baton implements AsyncDisposable {
  readonly #shared: Shared;

  constructor(engine: Engine, options: BatonOptions = {}) {
    this.#shared = {
      engine,
      clock: options.clock ?? systemClock,
      random: options.random ?? Math.random,
      emit: options.onEvent === undefined ? warn : guarded(options.onEvent),
      workers: new Set(),
    };
  }

  /** The kind of store: memory, sqlite, … */
  get engine(): string {
    return this.#shared.engine.name;
  }

  /** A queue by name. Costs nothing until it is used; the store learns of it then. */
  queue<T = unknown>(name: string, options: QueueOptions = {}): Queue<T> {
    return new Queue<T>(this.#shared, checkQueueName(name), parseQueueOptions(options));
  }

  /** Every queue of the store, with its counts. */
  queues(): Promise<readonly QueueReport[]> {
    return this.#shared.engine.queues({});
  }

  /** What an operator should know about the store. */
  check(): Promise<readonly Finding[]> {
    return this.#shared.engine.check();
  }

  /** Stops the workers, gracefully, and lets go of the store. */
  async close(options: StopOptions = {}): Promise<void> {
    await Promise.all([...this.#shared.workers].map((worker) => worker.stop(options)));
    await this.#shared.engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A listener that throws must not take work down with it. */
function guarded(listener: (event: WorkerEvent) => void): (event: WorkerEvent) => void {
  return (event) => {
    try {
      listener(event);
    } catch (error) {
      process.emitWarning(
        `A listener to Baton's events failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        "BatonWarning",
      );
    }
  };
}

function warn(event: WorkerEvent): void {
  const message = describeWarning(event);
  if (message !== undefined) process.emitWarning(message, "BatonWarning");
}
