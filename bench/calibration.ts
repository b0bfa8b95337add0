/**
 * What the machine is like at the moment, in three figures that have nothing to do with any subject. Taken before every
 * measurement: where they move, others are at work, and the figures of that moment are worth less.
 */
import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "./report/statistics.ts";
import { newFolder } from "./stores/place.ts";

export interface Calibration {
  /** A loop that always does the same, on one core. */
  readonly loopMs: number;
  /** A page of 4 KiB written and brought to the disk. */
  readonly syncMs: number;
  /** How much of all cores others use while this run does nothing, 0 to 1. Undefined: this system does not tell. */
  readonly othersShare: number | undefined;
}

/** About 10 ms each on the machines of 2026: long enough to be interrupted by whatever else runs. */
const LOOP_TURNS = 4_000;
const LOOP_PARTS = 1_000;
const LOOPS = 3;
const SYNCS = 5;
const PAGE = Buffer.alloc(4_096, "x");
/** Several ticks of the kernel's count, which has 100 a second. */
const LOOK_MS = 150;

let file: number | undefined;

export async function calibrate(): Promise<Calibration> {
  const before = cpuTicks();
  await sleep(LOOK_MS);
  const after = cpuTicks();
  return {
    loopMs: times(LOOPS, spin),
    syncMs: times(SYNCS, sync),
    othersShare: shareOf(before, after),
  };
}

/** The first ones compile the loop and make the file. */
export async function warmUpCalibration(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await calibrate();
}

function times(count: number, run: () => void): number {
  const all = Array.from({ length: count }, () => {
    const began = performance.now();
    run();
    return performance.now() - began;
  });
  return median(all);
}

/** Its result is kept, so that the loop cannot be optimised away. */
let spun = 0;

function spin(): void {
  for (let part = 0; part < LOOP_PARTS; part += 1) spun = spinPart(spun);
}

/** Called so often that it is compiled as a whole: one long loop was, or was not, by chance, and then took five times as long in the whole run. */
function spinPart(from: number): number {
  let sum = from;
  for (let turn = 0; turn < LOOP_TURNS; turn += 1) sum = (Math.imul(sum, 31) + turn) | 0;
  return sum;
}

function sync(): void {
  // On the disk of the stores. It lives as long as the run.
  file ??= openSync(join(newFolder("calibration"), "page"), "w");
  writeSync(file, PAGE, 0, PAGE.length, 0);
  fdatasyncSync(file);
}

/** Before the folders are removed. */
export function endCalibration(): void {
  if (file !== undefined) closeSync(file);
  file = undefined;
}

interface Ticks {
  readonly busy: number;
  readonly all: number;
}

function cpuTicks(): Ticks | undefined {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user already.
    const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
    const all = ticks.reduce((total, one) => total + one, 0);
    return { all, busy: all - (ticks[3] ?? 0) - (ticks[4] ?? 0) };
  } catch {
    return undefined;
  }
}

function shareOf(before: Ticks | undefined, after: Ticks | undefined): number | undefined {
  if (before === undefined || after === undefined || after.all === before.all) return undefined;
  return (after.busy - before.busy) / (after.all - before.all);
}
