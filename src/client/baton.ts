import { type Clock, systemClock } from "../domain/clock.ts";
import { checkQueueName } from "../domain/names.ts";
import { parseQueueOptions, type QueueOptions } from "../domain/settings.ts";
import type { Engine, Finding, QueueReport } from "../engine/port.ts";
import type { LockReport } from "../locks/port.ts";
import { type BatonEvent, describeWarning } from "./events.ts";
import { ConnectionLocks } from "./locks/connection-locks.ts";
import type { EachOptions, EachReport } from "./locks/each.ts";
import type { Election, ElectionOptions } from "./locks/election.ts";
import type { HeldLock } from "./locks/hold.ts";
import type { LockSession } from "./locks/kept-session.ts";
import type { LockOptions, SessionOptions } from "./locks/options.ts";
import { Queue } from "./queue.ts";
import type { Shared } from "./shared.ts";
import type { StopOptions } from "./worker.ts";
import type { WakeAdapter } from "../wake/port.ts";

export interface BatonOptions {
  /** Hears what workers and locks have to tell. Without it, warnings go to `process.emitWarning`. */
  readonly onEvent?: (event: BatonEvent) => void;
  /**
   * Carries wake-ups between processes in place of what the store has for it: a URL such as `nats://localhost:4222`, or an adapter. The
   * same as `?wake=` in the store's URL.
   */
  readonly wake?: string | WakeAdapter;
  /** Begins the names of its channels: stores that share a carrier need prefixes of their own. Default `baton`. */
  readonly wakePrefix?: string;
  /** For simulations and tests. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** A connection to a store. Close it when done: `await using baton = await connect(…)` does. */
export class Baton implements AsyncDisposable {
  readonly #shared: Shared;
  #locks: ConnectionLocks | undefined;

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

  /**
   * Acquires a lock: one holder at a time, everywhere (or `slots` of them). Kept by signs of life in the background until it is
   * released. Throws `LockBusy` when it is not to be had in the time given.
   */
  lock(name: string, options: LockOptions = {}): Promise<HeldLock> {
    return this.#lockFace().lock(name, options);
  }

  /**
   * Runs a function while holding a lock, and resolves with what it returns. Rejects with `LockLost` when the lock was lost
   * before the function had ended: somebody else may have been at it at the same time.
   */
  withLock<T>(name: string, work: (lock: HeldLock) => T, options: LockOptions = {}): Promise<Awaited<T>> {
    return this.#lockFace().withLock(name, work, options);
  }

  /** A life of its own for locks that belong together: they are kept, lost and freed as one. */
  session(options: SessionOptions = {}): Promise<LockSession> {
    return this.#lockFace().session(options);
  }

  /** An election by name. Costs nothing until it is used: `lead`, `campaign`, `leader`, `observe`. */
  elect(name: string, options: ElectionOptions = {}): Election {
    return this.#lockFace().elect(name, options);
  }

  /** Walks a list of tasks that other servers walk too: each task is run by one of them, and remembered when it is done. */
  each<T>(
    tasks: Iterable<T> | AsyncIterable<T>,
    work: (task: T, lock: HeldLock) => unknown,
    options: EachOptions<T> = {},
  ): Promise<EachReport<T>> {
    return this.#lockFace().each(tasks, work, options);
  }

  /** Every lock that is held, waited for, delayed or retired, by name. */
  locks(): Promise<readonly LockReport[]> {
    return this.#lockFace().list();
  }

  /** What an operator should know about the store. */
  check(): Promise<readonly Finding[]> {
    return this.#shared.engine.check();
  }

  /** What of that is known without asking the store, once a queue was used: what a power loss may take. */
  get caution(): Finding | undefined {
    return this.#shared.engine.caution;
  }

  /** Stops workers and elections, gracefully, frees the locks, and lets go of the store. */
  async close(options: StopOptions = {}): Promise<void> {
    await Promise.all([
      ...[...this.#shared.workers].map((worker) => worker.stop(options)),
      this.#locks?.close(options.grace ?? "20s"),
    ]);
    await this.#shared.engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #lockFace(): ConnectionLocks {
    const { engine, clock, emit } = this.#shared;
    this.#locks ??= new ConnectionLocks({ locks: engine.locks(), clock, emit });
    return this.#locks;
  }
}

/** A listener that throws must not take work down with it. */
function guarded(listener: (event: BatonEvent) => void): (event: BatonEvent) => void {
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

function warn(event: BatonEvent): void {
  const message = describeWarning(event);
  if (message !== undefined) process.emitWarning(message, "BatonWarning");
}
