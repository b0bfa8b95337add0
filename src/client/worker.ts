import { hostname } from "node:os";
import { type Duration, parseDuration } from "../domain/duration.ts";
import { checkReference } from "../domain/names.ts";
import { parseRetry, type RetryOptions } from "../domain/retry.ts";
import { checkCount, parseLease, type QueueSettings } from "../domain/settings.ts";
import type { Handler } from "../worker/handler.ts";
import { type StopReport, WorkerLoop, type WorkerSettings } from "../worker/worker-loop.ts";
import type { Shared } from "./shared.ts";

export interface WorkOptions {
  /** How many handlers run at a time. Default 1. */
  readonly concurrency?: number;
  /** Instead of the queue's. */
  readonly lease?: Duration;
  /** Instead of the queue's. */
  readonly retry?: RetryOptions;
  /** The longest time for one run of the handler. Default: none; the lease is renewed for as long as it runs. */
  readonly timeout?: Duration;
  /** Shown by inspection. Default: host, process and a number. */
  readonly name?: string;
  /** Stop by itself when nothing waits, is delayed or runs in the whole queue. */
  readonly untilEmpty?: boolean;
}

export interface StopOptions {
  /** How long running handlers may go on before their signal fires. Default 20s. */
  readonly grace?: Duration;
}

/** How often an idle worker looks whether what others hold is done: nothing wakes it for that. */
const EMPTY_CHECK_MS = 250;
/** Any long time will do: the timer only keeps the process alive. */
const KEEP_ALIVE_MS = 2 ** 30;

let workersStarted = 0;

/** A running worker. Stop it, or let it end by itself with `untilEmpty`. */
export class Worker implements AsyncDisposable {
  readonly name: string;
  /** Resolves when the worker has stopped, for whatever reason; rejects when it could not start. */
  readonly stopped: Promise<StopReport>;
  readonly #shared: Shared;
  readonly #loop: WorkerLoop;
  readonly #queue: string;
  readonly #hurry = new AbortController();
  #stop: Promise<StopReport> | undefined;
  readonly #ending: PromiseWithResolvers<StopReport> = Promise.withResolvers();

  constructor(
    shared: Shared,
    settings: WorkerSettings,
    handler: Handler<never>,
    declared: Promise<unknown>,
    untilEmpty: boolean,
  ) {
    this.name = settings.name;
    this.#shared = shared;
    this.#queue = settings.queue;
    this.#loop = new WorkerLoop(shared, settings, handler);
    // A worker is a reason for the process to live, whether or not its engine has an open handle.
    const alive = setInterval(() => undefined, KEEP_ALIVE_MS);
    this.stopped = this.#ending.promise.finally(() => {
      clearInterval(alive);
      shared.workers.delete(this);
    });
    // Whoever asks is told; nobody is forced to ask.
    this.stopped.catch(() => undefined);
    shared.workers.add(this);
    declared.then(
      () => {
        if (this.#stop !== undefined) return;
        this.#loop.start();
        if (untilEmpty) this.#stopWhenEmpty();
      },
      // Without effect when it was stopped before it could start: then the stop is what counts.
      (error: unknown) => this.#ending.reject(error),
    );
  }

  /** Handlers running now. */
  get running(): number {
    return this.#loop.running;
  }

  /** Stops claiming, lets handlers finish, then aborts them and gives their items back. A second call can only shorten the grace. */
  stop(options: StopOptions = {}): Promise<StopReport> {
    const graceMs = parseDuration(options.grace ?? "20s", "grace");
    if (this.#stop === undefined) {
      this.#stop = this.#loop.stop(graceMs, this.#hurry.signal);
      this.#ending.resolve(this.#stop);
    } else {
      this.#shared.clock.setTimer(graceMs, () => this.#hurry.abort());
    }
    return this.stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #stopWhenEmpty(): void {
    let looking = false;
    const look = async (): Promise<void> => {
      if (looking || this.#stop !== undefined || !this.#loop.idle) return;
      looking = true;
      try {
        const [report] = await this.#shared.engine.queues({ queue: this.#queue });
        const left = report === undefined ? 0 : report.waiting + report.delayed + report.running;
        if (left === 0 && this.#loop.idle) void this.stop();
      } catch (error) {
        this.#shared.emit({ type: "trouble", doing: "looking whether the queue is empty", error });
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

export function workerSettings(queue: string, settings: QueueSettings, options: WorkOptions): WorkerSettings {
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
