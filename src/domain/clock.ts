/**
 * Time comes in from outside, so that the whole core runs in a seeded simulation.
 *
 * Two readings, because each lies in its own way: the wall clock is stepped by people and by NTP,
 * the monotonic clock stands still while a machine is suspended.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  wall(): number;
  /** Milliseconds since an arbitrary moment, the same for every thread and process of this machine. */
  monotonic(): number;
  /** Calls back once, after `delayMs`. The timer does not keep the process alive. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** One reading of both clocks. */
export interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

export function instant(clock: Clock): Instant {
  return { wall: clock.wall(), monotonic: clock.monotonic() };
}

/** Waits; whoever waits does not keep the process alive. */
export function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, resolve);
  });
}

/** Any long time will do: the timer only keeps the process alive. */
const LONG_MS = 2 ** 30;

/**
 * Keeps the process alive until the work is over. Timers of a `Clock` do not, and a process that has nothing else to wait for would end in the
 * middle of an `await`, with exit code 13. What is waited for in this way must end by itself.
 */
export async function stayingAlive<T>(work: Promise<T>): Promise<T> {
  const alive = setInterval(() => undefined, LONG_MS);
  try {
    return await work;
  } finally {
    clearInterval(alive);
  }
}

/** Time that has passed since `since`, by whichever clock says more. */
export function elapsedMs(clock: Clock, since: Instant): number {
  return Math.max(clock.monotonic() - since.monotonic, clock.wall() - since.wall);
}

/** Node fires timers at once, with a warning, when they are set further ahead than this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Far less than a millisecond, in which stores count. */
const PRECISE_MS = 0.05;

/**
 * hrtime counts from boot, so readings of different threads and processes can be compared; performance.now() is the same clock from another
 * beginning, and cheaper to read. Between the two readings a thread may stand still; the first use of `performance` alone loads for milliseconds.
 */
function beginningOfPerformance(): number {
  for (;;) {
    const before = performance.now();
    const fromBoot = Number(process.hrtime.bigint()) / 1e6;
    if (performance.now() - before < PRECISE_MS) return fromBoot - before;
  }
}

const STARTED_AT = beginningOfPerformance();

export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => STARTED_AT + performance.now(),
  setTimer(delayMs, callback) {
    let timer: NodeJS.Timeout | undefined;
    const wait = (leftMs: number): void => {
      const step = Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS);
      timer = setTimeout(leftMs > step ? () => wait(leftMs - step) : callback, step);
      timer.unref();
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};
