import { hostname } from "node:os";
import { Backoff } from "../domain/backoff.ts";
import { type Duration, parseDuration } from "../domain/duration.ts";
import { BatonError, isLasting } from "../domain/errors.ts";
import { checkReference } from "../domain/names.ts";
import { checkFlag, checkFunction, checkOptions, type OptionNames } from "../domain/options.ts";
import { parseRetry, type RetryOptions } from "../domain/retry.ts";
import { checkCount, parseLease, type QueueSettings } from "../domain/settings.ts";
import type { Handler } from "../worker/handler.ts";
import type { StopReport } from "../worker/endings-told.ts";
import { WorkerLoop, type WorkerSettings } from "../worker/worker-loop.ts";
import type { Shared } from "./shared.ts";

export interface WorkOptions {
  /** How many handlers run at a time. Default 1. */
  readonly concurrency?: number | undefined;
  /** Instead of the queue's. */
  readonly lease?: Duration | undefined;
  /** Instead of the queue's. */
  readonly retry?: RetryOptions | undefined;
  /** The longest time for one run of the handler. Default: none; the lease is renewed for as long as it runs. */
  readonly timeout?: Duration | undefined;
  /** Shown by inspection. Default: host, process and a number. */
  readonly name?: string | undefined;
  /** Stop by itself when nothing waits, is delayed or runs in the whole queue. */
  readonly untilEmpty?: boolean | undefined;
}

export interface StopOptions {
  /** How long running handlers may go on before their signal fires. Default 20s. */
  readonly grace?: Duration | undefined;
}

const WORK_OPTIONS: OptionNames<WorkOptions> = {
  concurrency: true,
  lease: true,
  retry: true,
  timeout: true,
  name: true,
  untilEmpty: true,
};
const STOP_OPTIONS: OptionNames<StopOptions> = { grace: true };

/** How often an idle worker looks whether what others hold is done: nothing wakes it for that. */
const EMPTY_CHECK_MS = 250;
/** Any long time will do: the timer only keeps the process alive. */
const KEEP_ALIVE_MS = 2 ** 30;

let workersStarted = 0;

/** Between tries to begin while the store is away; doubles up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
const BEGINNING = "beginning to work";
const LOOKING = "looking whether the queue is empty";

/**
 * A running worker. Stop it, or let it end by itself with `untilEmpty`.
 *
 *   beginning ──the store knows the queue──▶ ready ──stop(), or the queue is empty──▶ stopped
 *       │ ▲ └────────────stop()──────────────────────────────────────────────────────▶
 *       │ └─the store is away: again, after a pause
 *       └──the store refuses, and will again──▶ failed
 */
export class Worker implements AsyncDisposable {
  readonly name: string;
  /**
   * Resolves when the worker is at work: the store knows the queue, and the first claim is under way. A store that is away is waited for.
   * Rejects when the worker cannot start, with the store's reason (such as `LevelsDiffer`), or when it was stopped before.
   */
  readonly ready: Promise<void>;
  /** Resolves when the worker has stopped, for whatever reason; rejects when it could not start. */
  readonly stopped: Promise<StopReport>;
  readonly #shared: Shared;
  readonly #loop: WorkerLoop;
  readonly #queue: string;
  readonly #hurry = new AbortController();
  #stop: Promise<StopReport> | undefined;
  readonly #ending: PromiseWithResolvers<StopReport> = Promise.withResolvers();
  readonly #beginning: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(
    shared: Shared,
    settings: WorkerSettings,
    handler: Handler<never>,
    declare: () => Promise<unknown>,
    untilEmpty: boolean,
  ) {
    this.name = settings.name;
    this.#shared = shared;
    this.#queue = settings.queue;
    this.#loop = new WorkerLoop(shared, settings, handler, declare);
    // A worker is a reason for the process to live, whether or not its engine has an open handle.
    const alive = setInterval(() => undefined, KEEP_ALIVE_MS);
    this.stopped = this.#ending.promise.finally(() => {
      clearInterval(alive);
      shared.workers.delete(this);
    });
    this.ready = this.#beginning.promise;
    // Whoever asks is told; nobody is forced to ask. An event tells everybody.
    this.stopped.catch(() => undefined);
    this.ready.catch(() => undefined);
    shared.workers.add(this);
    void this.#begin(declare, untilEmpty);
  }

  /** Handlers running now. */
  get running(): number {
    return this.#loop.running;
  }

  /** Stops claiming, lets handlers finish, then aborts them and gives their items back. A second call can only shorten the grace. */
  stop(options: StopOptions = {}): Promise<StopReport> {
    const graceMs = parseGrace(options);
    if (this.#stop === undefined) {
      this.#stop = this.#loop.stop(graceMs, this.#hurry.signal);
      // Without effect when it was ready before.
      this.#beginning.reject(notStarted(this.name));
      this.#ending.resolve(this.#stop);
    } else {
      this.#shared.clock.setTimer(graceMs, () => this.#hurry.abort());
    }
    return this.stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #begin(declare: () => Promise<unknown>, untilEmpty: boolean): Promise<void> {
    const { outages, random } = this.#shared;
    const backoff = new Backoff(random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    for (;;) {
      try {
        await outages.answered(BEGINNING, declare());
        break;
      } catch (error) {
        // The stop is what counts.
        if (this.#stop !== undefined) return;
        if (isLasting(error)) return this.#fail(error);
        outages.failed(BEGINNING, error);
        await outages.pause(backoff.next());
        if (this.#stop !== undefined) return;
      }
    }
    outages.worked(BEGINNING);
    if (this.#stop !== undefined) return;
    this.#loop.start(() => this.#beginning.resolve());
    if (untilEmpty) this.#stopWhenEmpty();
  }

  #fail(error: unknown): void {
    this.#beginning.reject(error);
    this.#ending.reject(error);
    this.#shared.emit({ type: "failed", queue: this.#queue, worker: this.name, error });
  }

  #stopWhenEmpty(): void {
    let looking = false;
    const look = async (): Promise<void> => {
      if (looking || this.#stop !== undefined || !this.#loop.idle) return;
      looking = true;
      try {
        const [report] = await this.#shared.engine.queues({ queue: this.#queue });
        this.#shared.outages.worked(LOOKING);
        const left = report === undefined ? 0 : report.waiting + report.delayed + report.running;
        if (left === 0 && this.#loop.idle) void this.stop();
      } catch (error) {
        this.#shared.outages.failed(LOOKING, error);
      } finally {
        looking = false;
      }
    };
    this.#loop.onChange = () => void look();
    const again = (): void => {
      if (this.#stop !== undefined) return;
      void look();
      this.#shared.clock.setTimer(EMPTY_CHECK_MS, again);
    };
    again();
  }
}

function notStarted(name: string): BatonError {
  return new BatonError("STOPPING", `Worker ${name} was stopped before it was ready. It has taken nothing.`);
}

/** The grace period of a stop, in milliseconds. */
export function parseGrace(options: StopOptions): number {
  return parseDuration(checkOptions(options, STOP_OPTIONS).grace ?? "20s", "grace");
}

export function checkHandler<H>(handler: H): H {
  return checkFunction(handler, "handler", "works on an item");
}

export function workerSettings(queue: string, settings: QueueSettings, options: WorkOptions): WorkerSettings {
  checkOptions(options, WORK_OPTIONS);
  checkFlag(options.untilEmpty, "untilEmpty");
  workersStarted += 1;
  return {
    queue,
    name: checkReference(options.name ?? `${hostname()}:${process.pid}:${workersStarted}`, "name"),
    concurrency: checkCount(options.concurrency ?? 1, "concurrency"),
    leaseMs: options.lease === undefined ? settings.leaseMs : parseLease(options.lease),
    patienceMs: settings.patienceMs,
    retry: options.retry === undefined ? settings.retry : parseRetry(options.retry),
    resultLimit: settings.payloadLimit,
    timeoutMs: options.timeout === undefined ? undefined : parseDuration(options.timeout, "timeout"),
  };
}
