import type { Clock } from "../../../src/domain/clock.ts";

/** Waits that end, so that what never comes is a failure that says what did not come. */

export async function within<T>(clock: Clock, ms: number, what: string, something: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = clock.setTimer(ms, () => reject(new Error(`Within ${ms} ms there was not: ${what}`)));
  // Timers of a clock do not keep the process alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    return await Promise.race([something, promise]);
  } finally {
    timer.cancel();
    clearInterval(alive);
  }
}

/** Whether it is settled, for whoever must not wait for it. */
export class Watched<T> {
  readonly promise: Promise<T>;
  isSettled = false;

  constructor(promise: Promise<T>) {
    this.promise = promise;
    const settle = (): void => void (this.isSettled = true);
    promise.then(settle, settle);
  }
}
