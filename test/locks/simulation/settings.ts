import type { Random } from "../../kit/random.ts";

/** What one seed plays. */
export interface Settings {
  readonly leaseMs: number;
  /** By name: how many may hold the lock. */
  readonly locks: ReadonlyMap<string, number>;
  readonly processes: number;
  /** Calls at a time in each process, all under its one session. */
  readonly callers: number;
  readonly rounds: number;
  readonly longestDelayMs: number;
  readonly longestRetireMs: number;
  /** Stores that count in seconds round up to this. */
  readonly ttlStepMs: number;
  /** Wall clocks differ, and are stepped. Delays are promises of the wall clock, so they are judged only without. */
  readonly areClocksWrong: boolean;
  /** How long things go wrong. */
  readonly troubleMs: number;
  readonly rates: Rates;
}

/** Chance per request, and per process and second. */
export interface Rates {
  readonly requestLost: number;
  readonly replyLost: number;
  readonly slow: number;
  readonly hintLost: number;
  readonly crash: number;
  readonly pause: number;
  readonly clockStep: number;
  /** Per request: the process crashes, or stalls, when it has just been sent. */
  readonly crashInCall: number;
  readonly stallInCall: number;
}

const CALM: Rates = {
  requestLost: 0,
  replyLost: 0,
  slow: 0,
  hintLost: 0,
  crash: 0,
  pause: 0,
  clockStep: 0,
  crashInCall: 0,
  stallInCall: 0,
};

export function drawSettings(random: Random): Settings {
  const areClocksWrong = random.chance(0.3);
  const locks = new Map<string, number>();
  for (const name of ["a", "b", "c"].slice(0, random.between(1, 3))) locks.set(name, random.pick([1, 1, 1, 2, 3]));
  return {
    leaseMs: random.pick([1_000, 2_000, 3_000]),
    locks,
    processes: random.between(1, 4),
    callers: random.between(1, 3),
    rounds: random.between(1, 5),
    longestDelayMs: random.pick([0, 500, 2_000]),
    longestRetireMs: random.pick([0, 0, 1_500]),
    ttlStepMs: random.pick([1, 1, 1_000]),
    areClocksWrong,
    troubleMs: random.between(2, 8) * 1_000,
    rates: drawRates(random, areClocksWrong),
  };
}

/** Some seeds have no faults, some one kind, some all: each finds what the others hide. */
function drawRates(random: Random, areClocksWrong: boolean): Rates {
  const all = {
    requestLost: 0.04,
    replyLost: 0.04,
    slow: 0.03,
    // There are few hints, because only those concerned are told.
    hintLost: 0.3,
    crash: 0.1,
    pause: 0.15,
    crashInCall: 0.003,
    stallInCall: 0.01,
  };
  const clockStep = areClocksWrong ? 0.2 : 0;
  const kinds = random.pick(["none", "one", "some", "all"] as const);
  if (kinds === "none") return { ...CALM, clockStep };
  const names = Object.keys(all) as (keyof typeof all)[];
  const only = random.pick(names);
  const rates: Rates = { ...all, clockStep };
  const isKept = (name: keyof typeof all): boolean =>
    kinds === "all" || (kinds === "one" ? name === only : random.chance(0.5));
  const left = Object.fromEntries(names.map((name) => [name, isKept(name) ? all[name] : 0]));
  return { ...rates, ...left };
}
