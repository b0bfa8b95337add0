/**
 * Judges a finished run by what its processes recorded, and by nothing else: the store is not asked. Every rule is
 * sound for records that are made a little before or after the moment in the store, so a slow machine cannot
 * make a correct run look wrong.
 */
import { type Ended, type HistoryRecord, type Killed, LEVELS, type Started, type Submitted } from "./history.ts";

export interface Rule {
  readonly promise: string;
  readonly violations: readonly string[];
}

/** One run of a handler, from its start to its end or to the death of its process. */
interface Run extends Started {
  readonly endedAt: number;
  readonly finished: boolean;
}

export function verify(history: readonly HistoryRecord[]): readonly Rule[] {
  const submitted = history.filter((record) => record.type === "submit");
  const runs = runsOf(history);
  return [
    { promise: "no car was ever worked on by two", violations: overlaps(runs) },
    { promise: "every fence of a car was higher than the one before", violations: fencesThatFell(runs) },
    { promise: "every accepted item was done, once", violations: notDoneOnce(submitted, runs) },
    { promise: "urgent items of a car went first, equal ones in order", violations: outOfOrder(submitted, runs) },
  ];
}

function runsOf(history: readonly HistoryRecord[]): readonly Run[] {
  const starts = history.filter((record) => record.type === "start");
  const ends = history.filter((record) => record.type === "end");
  const kills = history.filter((record) => record.type === "kill");
  return starts.map((start) => runOf(start, ends, kills)).toSorted((a, b) => a.at - b.at);
}

function runOf(start: Started, ends: readonly Ended[], kills: readonly Killed[]): Run {
  const isOwn = ({ worker, at }: Ended | Killed): boolean => worker === start.worker && at >= start.at;
  const end = ends.find((record) => isOwn(record) && record.item === start.item);
  if (end !== undefined) return { ...start, endedAt: end.at, finished: end.done };
  // Nobody knows what a handler without an end did after its start, unless its process died.
  return { ...start, endedAt: kills.find(isOwn)?.at ?? Infinity, finished: false };
}

function overlaps(runs: readonly Run[]): string[] {
  return perCar(runs).flatMap((ofCar) => {
    const found: string[] = [];
    let longest: Run | undefined;
    for (const run of ofCar) {
      if (longest !== undefined && run.at < longest.endedAt)
        found.push(`${run.car}: ${run.worker} began ${run.item} while ${longest.worker} was at ${longest.item}`);
      if (longest === undefined || run.endedAt > longest.endedAt) longest = run;
    }
    return found;
  });
}

function fencesThatFell(runs: readonly Run[]): string[] {
  return neighbours(runs)
    .filter(([before, after]) => after.fence <= before.fence)
    .map(([before, after]) => `${after.car}: fence ${after.fence} came after ${before.fence}`);
}

function notDoneOnce(submitted: readonly Submitted[], runs: readonly Run[]): string[] {
  const done = new Map<string, number>();
  for (const { item, finished } of runs) if (finished) done.set(item, (done.get(item) ?? 0) + 1);
  return submitted
    .filter(({ item }) => done.get(item) !== 1)
    .map(({ item }) => `${item} was accepted, and done ${done.get(item) ?? 0} times`);
}

/**
 * `late` should have begun before `early` did, if it was certainly accepted when `early` was chosen. When that was
 * is not recorded, but it was after the worker and the car were free and the item was submitted.
 */
function outOfOrder(submitted: readonly Submitted[], runs: readonly Run[]): string[] {
  const firstRuns = new Map<string, Run>();
  for (const run of runs) if (!firstRuns.has(run.item)) firstRuns.set(run.item, run);
  const found: string[] = [];
  for (const early of submitted) {
    const run = firstRuns.get(early.item);
    if (run === undefined) continue;
    const chosenAfter = Math.max(early.from, freeBefore(runs, run));
    for (const late of submitted) {
      const lateRun = firstRuns.get(late.item);
      if (late.car !== early.car || lateRun === undefined || lateRun.at <= run.at) continue;
      const moreUrgent = LEVELS.indexOf(late.level) < LEVELS.indexOf(early.level) && late.at < chosenAfter;
      const cameFirst = late.level === early.level && late.at < early.from;
      if (moreUrgent || cameFirst)
        found.push(`${early.car}: ${early.item} (${early.level}) began before ${late.item} (${late.level})`);
    }
  }
  return found;
}

/** When both the worker of a run and its car were certainly free: the last end before it of either. */
function freeBefore(runs: readonly Run[], { worker, car, at }: Run): number {
  const ends = runs.filter((run) => (run.worker === worker || run.car === car) && run.endedAt <= at);
  return Math.max(0, ...ends.map(({ endedAt }) => endedAt));
}

function perCar(runs: readonly Run[]): readonly (readonly Run[])[] {
  return [...Map.groupBy(runs, ({ car }) => car).values()];
}

function neighbours(runs: readonly Run[]): readonly (readonly [before: Run, after: Run])[] {
  return perCar(runs).flatMap((ofCar) => ofCar.slice(1).map((after, index) => [ofCar[index] ?? after, after] as const));
}
