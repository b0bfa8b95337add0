import type { Duration } from "../domain/duration.ts";
import { isError } from "../domain/realms.ts";
import { type Clock, stayingAlive, systemClock } from "../domain/clock.ts";
import { Closed, InvalidInput } from "../domain/errors.ts";
import { checkQueueName } from "../domain/names.ts";
import { checkFunction, checkOptions, type OptionNames } from "../domain/options.ts";
import { parseQueueOptions, type QueueOptions } from "../domain/settings.ts";
import type { Engine, Finding, QueueReport, Repair } from "../engine/port.ts";
import type { LockReport } from "../locks/port.ts";
import type { BatonEvent } from "./events.ts";
import { ConnectionLocks } from "./locks/connection-locks.ts";
import type { EachOptions, EachReport } from "./locks/each.ts";
import type { Election, ElectionOptions } from "./locks/election.ts";
import type { HeldLock } from "./locks/hold.ts";
import type { LockSession } from "./locks/kept-session.ts";
import type { LockOptions, SessionOptions } from "./locks/options.ts";
import { Queue } from "./queue.ts";
import type { Shared } from "./shared.ts";
import { warner } from "./warner.ts";
import { parseGrace, type StopOptions } from "./worker.ts";
import type { WakeAdapter } from "../wake/port.ts";
import { Outages } from "../worker/outages.ts";

export interface BatonOptions {
  /** Hears what workers and locks have to tell. Without it, warnings go to `process.emitWarning`. */
  readonly onEvent?: ((event: BatonEvent) => void) | undefined;
  /**
   * Carries wake-ups between processes in place of what the store has for it: a URL such as `nats://localhost:4222`, or an adapter. The
   * same as `?wake=` in the store's URL.
   */
  readonly wake?: string | WakeAdapter | undefined;
  /** Begins the names of its channels: stores that share a carrier need prefixes of their own. Default `baton`. */
  readonly wakePrefix?: string | undefined;
  /**
   * How long `connect` goes on trying while the store cannot be reached (`STORE_UNAVAILABLE`), with growing pauses. Default: it tries once.
   * The outage is told as a later one is, by `trouble` and `recovered`.
   */
  readonly waitForStore?: Duration | undefined;
  /** For simulations and tests. */
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

export interface QueuesOptions {
  readonly queue?: string | undefined;
}

const QUEUES_OPTIONS: OptionNames<QueuesOptions> = { queue: true };

const BATON_OPTIONS: OptionNames<BatonOptions> = {
  onEvent: true,
  waitForStore: true,
  wake: true,
  wakePrefix: true,
  clock: true,
  random: true,
};

const CONNECTED = "keeping the connection";

/** Looked at before anything is opened. */
export function checkBatonOptions(options: BatonOptions): BatonOptions {
  const { onEvent, random, clock, wake, wakePrefix } = checkOptions(options, BATON_OPTIONS);
  if (onEvent !== undefined) checkFunction(onEvent, "onEvent", "hears events");
  if (random !== undefined) checkFunction(random, "random", "returns a number from 0 to 1");
  if (clock !== undefined && typeof clock?.setTimer !== "function")
    throw new InvalidInput("clock", clock, "an object with monotonic(), wall() and setTimer()");
  if (wake !== undefined && typeof wake !== "string" && typeof wake?.publish !== "function")
    throw new InvalidInput("wake", wake, "a URL such as nats://localhost:4222, or an adapter");
  if (wakePrefix !== undefined && typeof wakePrefix !== "string")
    throw new InvalidInput("wakePrefix", wakePrefix, "a text");
  return options;
}

/** A connection to a store. Close it when done: `await using baton = await connect(…)` does. */
export class Baton implements AsyncDisposable {
  readonly #shared: Shared;
  #locks: ConnectionLocks | undefined;

  /** @param outages what was told of the store before it was there */
  constructor(engine: Engine, options: BatonOptions = {}, outages?: Outages) {
    checkBatonOptions(options);
    const clock = options.clock ?? systemClock;
    const emit = tellerOf(options);
    this.#shared = {
      engine,
      clock,
      random: options.random ?? Math.random,
      emit,
      outages: outages ?? new Outages(clock, emit),
      workers: new Set(),
      closed: false,
    };
    const { outages: told } = this.#shared;
    engine.onAway?.((away) => (away === undefined ? told.worked(CONNECTED) : told.failed(CONNECTED, away)));
  }

  /** The kind of store: memory, sqlite, … */
  get engine(): string {
    return this.#shared.engine.name;
  }

  /** A queue by name. Costs nothing until it is used; the store learns of it then. */
  queue<T = unknown>(name: string, options: QueueOptions = {}): Queue<T> {
    return new Queue<T>(this.#shared, checkQueueName(name), parseQueueOptions(options));
  }

  /** Every queue of the store, with its counts; or the one named, if it is there: to look does not make it. */
  async queues(options: QueuesOptions = {}): Promise<readonly QueueReport[]> {
    const { queue } = checkOptions(options, QUEUES_OPTIONS);
    return await this.#shared.engine.queues(queue === undefined ? {} : { queue: checkQueueName(queue) });
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
  async check(): Promise<readonly Finding[]> {
    const { engine } = this.#shared;
    const findings = await engine.check();
    // An engine that has repairs of its own has looked at the locks, too.
    if (engine.repairs !== undefined) return findings;
    const damaged = (await engine.locks().repairs?.()) ?? [];
    return [
      ...findings,
      ...damaged.map(({ subject, detail, action }): Finding => ({
        severity: "error",
        subject,
        detail,
        advice: `baton doctor --repair: ${action}`,
      })),
    ];
  }

  /**
   * What is damaged in the store and can be repaired. Each says what it would do, and does nothing before it is run. Empty where nothing is, and
   * on stores that have no such repairs: what `check` finds there is the store's own to repair.
   */
  async repairs(): Promise<readonly Repair[]> {
    const { engine } = this.#shared;
    return (await (engine.repairs === undefined ? engine.locks().repairs?.() : engine.repairs())) ?? [];
  }

  /** What of that is known without asking the store, once a queue was used: what a power loss may take. */
  get caution(): Finding | undefined {
    return this.#shared.engine.caution;
  }

  /** Stops workers and elections, gracefully, frees the locks, and lets go of the store. */
  async close(options: StopOptions = {}): Promise<void> {
    const graceMs = parseGrace(options);
    this.#shared.closed = true;
    await stayingAlive(this.#close(graceMs));
  }

  async #close(graceMs: number): Promise<void> {
    await Promise.all([
      ...[...this.#shared.workers].map((worker) => worker.stop({ grace: graceMs })),
      this.#locks?.close(graceMs),
    ]);
    this.#shared.outages.close();
    await this.#shared.engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #lockFace(): ConnectionLocks {
    const { engine, clock, emit, outages, closed } = this.#shared;
    if (this.#locks === undefined && closed) throw new Closed();
    this.#locks ??= new ConnectionLocks({ locks: engine.locks(), clock, emit, outages });
    return this.#locks;
  }
}

/** Who hears of events: the application's listener, or else a person of the few that mean a risk. */
export function tellerOf({ onEvent, clock = systemClock }: BatonOptions): (event: BatonEvent) => void {
  return onEvent === undefined
    ? warner(clock, (message, options) => process.emitWarning(message, options))
    : guarded(onEvent);
}

/** A listener that throws must not take work down with it. */
function guarded(listener: (event: BatonEvent) => void): (event: BatonEvent) => void {
  return (event) => {
    try {
      listener(event);
    } catch (error) {
      process.emitWarning(
        `A listener to Baton's events failed: ${isError(error) ? (error.stack ?? error.message) : String(error)}`,
        "BatonWarning",
      );
    }
  };
}
