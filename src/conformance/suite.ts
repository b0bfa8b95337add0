/** What the suites of engines and of locks have in common: how cases are run, left out and counted. */
import { isError } from "../domain/realms.ts";
import { LeftOut, NotConforming } from "./expect.ts";

export interface SuiteCase<S> {
  /** Unique in the suite; a skip names it. */
  readonly name: string;
  /** Runs while no other case does: it restarts the store, or it measures time. */
  readonly alone: boolean;
  run(scene: S): Promise<void>;
}

export interface SuiteScene {
  begin(): Promise<void>;
  end(): Promise<void>;
}

export type SuiteResult<C> =
  | { readonly case: C; readonly status: "passed"; readonly ms: number }
  | { readonly case: C; readonly status: "failed"; readonly ms: number; readonly error: Error }
  | { readonly case: C; readonly status: "skipped"; readonly reason: string };

export interface SuiteOptions<C> {
  readonly onResult?: ((result: SuiteResult<C>) => void) | undefined;
  readonly filter?: ((one: C) => boolean) | undefined;
  /** Cases that run at a time; each has names of its own. */
  readonly concurrency?: number | undefined;
  /** A case that takes longer waits for something that never comes. */
  readonly caseTimeoutMs?: number | undefined;
}

export interface SuiteSummary<C> {
  readonly target: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly SuiteResult<C>[];
}

/** Runs what can run together, then the rest one by one. Prints nothing and throws nothing. */
export async function runSuite<C extends { readonly alone: boolean }>(
  target: string,
  cases: readonly C[],
  run: (one: C) => Promise<SuiteResult<C>>,
  { onResult, filter = () => true, concurrency = 8 }: SuiteOptions<C>,
): Promise<SuiteSummary<C>> {
  const results: SuiteResult<C>[] = [];
  const chosen = cases.filter(filter);
  const work = async (pending: C[]): Promise<void> => {
    for (let one = pending.shift(); one !== undefined; one = pending.shift()) {
      const result = await run(one);
      results.push(result);
      onResult?.(result);
    }
  };
  const together = chosen.filter(({ alone }) => !alone);
  await Promise.all(Array.from({ length: concurrency }, () => work(together)));
  // A restart would pull the store away from under the other cases.
  await work(chosen.filter(({ alone }) => alone));
  const count = (wanted: SuiteResult<C>["status"]): number => results.filter(({ status }) => status === wanted).length;
  return { target, passed: count("passed"), failed: count("failed"), skipped: count("skipped"), results };
}

/** Plays one case. The scene is told by the signal when it is over. */
export async function playCase<S extends SuiteScene, C extends SuiteCase<S>>(
  one: C,
  newScene: (over: AbortSignal) => S,
  timeoutMs: number,
): Promise<SuiteResult<C>> {
  const began = performance.now();
  const over = new AbortController();
  const scene = newScene(over.signal);
  try {
    await within(timeoutMs, beginAndRun(one, scene));
    return { case: one, status: "passed", ms: performance.now() - began };
  } catch (thrown) {
    if (thrown instanceof LeftOut) return { case: one, status: "skipped", reason: thrown.message };
    const error = isError(thrown) ? thrown : new Error(String(thrown));
    return { case: one, status: "failed", ms: performance.now() - began, error };
  } finally {
    over.abort();
    // A store whose close fails or hangs has said so in the cases about closing.
    await within(timeoutMs, scene.end()).catch(() => undefined);
  }
}

async function beginAndRun<S extends SuiteScene>(one: SuiteCase<S>, scene: S): Promise<void> {
  await scene.begin();
  await one.run(scene);
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  // This timer also keeps the process alive while a store has nothing but timers that do not.
  const timer = setTimeout(
    () => reject(new NotConforming(`Not finished after ${ms} ms: something never resolved.`)),
    ms,
  );
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
