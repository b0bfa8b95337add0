import type { Duration } from "../../domain/duration.ts";
import { InvalidInput } from "../../domain/errors.ts";
import { checkFunction, checkOptions, checkSignal, type OptionNames } from "../../domain/options.ts";
import { isError } from "../../domain/realms.ts";
import { checkCount } from "../../domain/settings.ts";
import type { HeldLock, Hold } from "./hold.ts";
import { type BusyReason, LockBusy } from "./lock-busy.ts";
import { checkLockName, lockLeaseMs, type LockSettings, parseRetire } from "./options.ts";
import type { Taker } from "./taker.ts";

export interface EachOptions<T> {
  /** The name of the lock that stands for a task: the same on every server. Default: the task itself, if it is a text. */
  readonly key?: ((task: T) => string) | undefined;
  /** How many tasks run at a time here. Default 1. */
  readonly concurrency?: number | undefined;
  /** How long a task stays taken if this process is lost. Default 15s. */
  readonly lease?: Duration | undefined;
  /** How long a task that is done is not run again, by whoever comes late to the list. Default 1h. */
  readonly remember?: Duration | undefined;
  /** Takes no further task, and fires the signals of those that run. */
  readonly signal?: AbortSignal | undefined;
}

const EACH_OPTIONS: OptionNames<EachOptions<unknown>> = {
  key: true,
  concurrency: true,
  lease: true,
  remember: true,
  signal: true,
};

export interface EachReport<T> {
  readonly done: readonly T[];
  /** `held`: another server runs it. `retired`: it was done before. `delayed`: it waits out a delay after a loss. */
  readonly skipped: readonly { readonly task: T; readonly why: BusyReason }[];
  /** Not remembered: whoever comes next tries again. */
  readonly failed: readonly { readonly task: T; readonly error: unknown }[];
}

/** One look, without waiting: what others have is theirs. */
const TRY: LockSettings = { waitMs: 0, slots: 1, delayAfterLossMs: 0, data: undefined, signal: undefined };

/** Walks the list; several servers may walk the same one, and each task is run by one of them. */
export async function runEach<T>(
  taker: Taker,
  tasks: Iterable<T> | AsyncIterable<T>,
  work: (task: T, lock: HeldLock) => unknown,
  options: EachOptions<T>,
): Promise<EachReport<T>> {
  checkOptions(options, EACH_OPTIONS);
  const concurrency = checkCount(options.concurrency ?? 1, "concurrency");
  const leaseMs = lockLeaseMs(options.lease);
  const retire = parseRetire(options.remember ?? "1h", "remember");
  checkWalk(tasks, work);
  const { key = taskAsName, signal } = options;
  checkFunction(key, "key", "names a task");
  checkSignal(signal);
  const done: T[] = [];
  const skipped: { task: T; why: BusyReason }[] = [];
  const failed: { task: T; error: unknown }[] = [];
  const running = new Set<Hold>();
  const abort = (): void => {
    for (const held of running) held.abort(asError(signal?.reason));
  };

  const run = async (task: T): Promise<void> => {
    try {
      const { session, held } = await taker.take(checkLockName(key(task)), leaseMs, TRY);
      running.add(held);
      if (signal?.aborted === true) abort();
      try {
        await session.run(held, async () => {
          await work(task, held);
          // In the same step as the release: nobody finds the task free and not yet remembered.
          await letGo(held);
        });
      } finally {
        running.delete(held);
      }
      done.push(task);
    } catch (error) {
      // Said of the call, not of a task.
      if (error instanceof InvalidInput && error.field === "key") throw error;
      if (error instanceof LockBusy) skipped.push({ task, why: error.why });
      else failed.push({ task, error });
    }
  };
  const letGo = async (held: Hold): Promise<void> => {
    // If that gets no answer, the task is done all the same.
    await held.releaseAfterWork(retire === 0 ? {} : { retire }, `remembering that ${held.name} is done`);
  };

  // One walk for all: each takes the next task when it is done with its last.
  const walk = walkOf(tasks);
  const goOn = async (): Promise<void> => {
    for (;;) {
      if (signal?.aborted === true) return;
      const next = await walk.next();
      if (next.done === true) return;
      await run(next.value);
    }
  };
  signal?.addEventListener("abort", abort);
  try {
    const walks = await Promise.allSettled(Array.from({ length: concurrency }, goOn));
    const refused = walks.find((one) => one.status === "rejected");
    if (refused !== undefined) throw asError(refused.reason);
  } finally {
    signal?.removeEventListener("abort", abort);
    await walk.return(undefined);
  }
  return { done, skipped, failed };
}

/** A generator queues calls of `next`, so that several may ask at a time. */
async function* walkOf<T>(tasks: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T, undefined, undefined> {
  yield* tasks;
  return undefined;
}

function checkWalk(tasks: unknown, work: unknown): void {
  const isList =
    (typeof tasks === "object" && tasks !== null && (Symbol.iterator in tasks || Symbol.asyncIterator in tasks)) ||
    typeof tasks === "string";
  if (!isList) throw new InvalidInput("tasks", tasks, "a list, or anything else that can be walked with for await");
  checkFunction(work, "work", "runs a task");
}

function taskAsName(task: unknown): string {
  if (typeof task === "string") return task;
  throw new InvalidInput("key", undefined, "a function that names a task, because the tasks are not texts");
}

function asError(reason: unknown): Error {
  return isError(reason) ? reason : new Error(String(reason));
}
