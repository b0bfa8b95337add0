/** Clocks that a worker should not have. */
import type { Clock } from "../../src/index.ts";
import { now } from "../history/clock.ts";

const LOOK_EVERY_MS = 20;
/** Between two looks of a process that runs, even on a busy machine. */
const ORDINARY_MS = 150;
/** So much faster than time, until it has caught up. */
const HURRY = 2;

/** No time passes: no deadline ever comes, and no renewal is ever due. */
export function frozenClock(): Clock {
  const wall = Date.now();
  const monotonic = now();
  return { wall: () => wall, monotonic: () => monotonic, setTimer };
}

/** Does not count at first the time in which the process stood still: it hurries until it is right again. */
export function napClock(): Clock {
  let slept = 0;
  let looked = now();
  const look = (): void => {
    const passed = now() - looked;
    slept = passed > ORDINARY_MS ? slept + passed : Math.max(0, slept - HURRY * passed);
    looked += passed;
  };
  setInterval(look, LOOK_EVERY_MS).unref();
  const awake = (clock: () => number) => () => {
    look();
    return clock() - slept;
  };
  return { wall: awake(Date.now), monotonic: awake(now), setTimer };
}

function setTimer(delayMs: number, callback: () => void): { cancel(): void } {
  const timer = setTimeout(callback, Math.max(0, delayMs));
  timer.unref();
  return { cancel: () => clearTimeout(timer) };
}
