/**
 * The product keeps a process alive by intervals, on real time. In a world of virtual time they are counted, so that one that is left is
 * noticed; and they do not keep the test alive, because a process that crashes there leaves its own.
 */
import { AsyncLocalStorage } from "node:async_hooks";

const world = new AsyncLocalStorage<Set<unknown>>();
const begin = globalThis.setInterval;
const end = globalThis.clearInterval;
const owners = new WeakMap<object, Set<unknown>>();

function counted<Arguments extends readonly unknown[]>(
  callback: (...parameters: Arguments) => void,
  delayMs?: number,
  ...parameters: Arguments
): NodeJS.Timeout {
  const interval = begin(callback, delayMs, ...parameters);
  const its = world.getStore();
  if (its === undefined) return interval;
  its.add(interval);
  owners.set(interval, its);
  return interval.unref();
}

/** From here on, for this thread. */
export function countIntervals(): void {
  // Nothing in the product promisifies setInterval.
  globalThis.setInterval = counted;
  globalThis.clearInterval = (interval) => {
    if (typeof interval === "object") owners.get(interval)?.delete(interval);
    end(interval);
  };
}

/** What follows from it counts its intervals in the set. */
export function inWorld<T>(make: (intervals: ReadonlySet<unknown>) => T): T {
  const intervals = new Set<unknown>();
  return world.run(intervals, () => make(intervals));
}
