import type { Mode, QueueOptions } from "../../src/domain/settings.ts";
import type { Random } from "../kit/random.ts";

/** Everything about a run that its seed decides before it begins. */
export interface Settings {
  readonly processes: number;
  readonly keys: readonly string[];
  readonly levels: readonly string[];
  readonly leaseMs: number;
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly place: "keep" | "yield";
  readonly mode: Mode;
  readonly keyLimit: number;
  readonly queueLimit: number;
  readonly patienceMs: number;
  readonly historyMs: number;
  readonly timeoutMs: number | undefined;
  readonly submissions: number;
  /** The share of items that take next to no time, so that leases cover runs and keys are fetched ahead. */
  readonly quick: number;
  /** The share of items that kill the process which works on them, again and again. */
  readonly poisonous: number;
  /** For how long things go wrong. After it comes the drain. */
  readonly troubleMs: number;
  readonly faults: FaultRates;
}

/** Shares of calls, or expected counts in the time of trouble. */
export interface FaultRates {
  readonly requestLost: number;
  readonly replyLost: number;
  readonly duplicated: number;
  readonly slow: number;
  readonly crashInCall: number;
  readonly crashInHandler: number;
  readonly blockInHandler: number;
  readonly crashes: number;
  readonly pauses: number;
  readonly partitions: number;
  readonly processClockSteps: number;
  readonly storeClockSteps: number;
  readonly stops: number;
}

export const NO_FAULTS: FaultRates = {
  requestLost: 0,
  replyLost: 0,
  duplicated: 0,
  slow: 0,
  crashInCall: 0,
  crashInHandler: 0,
  blockInHandler: 0,
  crashes: 0,
  pauses: 0,
  partitions: 0,
  processClockSteps: 0,
  storeClockSteps: 0,
  stops: 0,
};

/** A day is longer than any run: an urgent level then always goes first. */
export const ENDLESS_PATIENCE_MS = 86_400_000;

export function drawSettings(random: Random): Settings {
  const leaseMs = random.pick([400, 1_000, 2_000, 6_000]);
  const quick = random.pick([0, 0, 0.8, 0.9, 0.95, 1]);
  return {
    processes: random.between(2, 4),
    keys: Array.from({ length: random.between(1, 5) }, (_, index) => `key${index + 1}`),
    levels: ["high", "normal", "low"],
    leaseMs,
    attempts: random.between(1, 4),
    backoffMs: random.pick([0, 50, 500]),
    maxBackoffMs: 2_000,
    place: random.pick(["keep", "yield"]),
    // Where items are quick, they stand in line: that is what runs are made of.
    mode: random.pick(["fifo", "fifo", "fifo", quick > 0 ? "fifo" : "strict", "latest"]),
    keyLimit: random.pick([quick > 0 ? 1_000 : 2, 5, 1_000]),
    queueLimit: random.pick([6, 1_000, 1_000]),
    patienceMs: random.pick([100, ENDLESS_PATIENCE_MS]),
    historyMs: random.pick([0, 3_600_000]),
    timeoutMs: random.chance(0.25) ? Math.round(leaseMs * random.pick([0.5, 1.5])) : undefined,
    submissions: quick > 0 ? random.between(10, 70) : random.between(4, 24),
    quick,
    poisonous: random.pick([0, 0, 0.05, 0.15]),
    troubleMs: leaseMs * random.between(3, 12),
    faults: drawFaults(random),
  };
}

/**
 * Each kind of fault is there or not: a run with everything at once hides what needs two kinds and the absence of a
 * third. One run in ten has none: there each item must run exactly once.
 */
function drawFaults(random: Random): FaultRates {
  if (random.chance(0.1)) return NO_FAULTS;
  const share = random.pick([0.02, 0.06, 0.15]);
  const count = random.between(1, 3);
  const perhaps = (rate: number): number => (random.chance(0.5) ? rate : 0);
  return {
    requestLost: perhaps(share),
    replyLost: perhaps(share),
    duplicated: perhaps(share * 2),
    slow: perhaps(share * 2),
    crashInCall: perhaps(share / 4),
    crashInHandler: perhaps(share / 2),
    blockInHandler: perhaps(share / 2),
    crashes: perhaps(count),
    pauses: perhaps(count),
    partitions: perhaps(count),
    processClockSteps: perhaps(count + 1),
    storeClockSteps: perhaps(count),
    stops: perhaps(count),
  };
}

export function queueOptions(settings: Settings): QueueOptions {
  const { mode, levels, attempts, place } = settings;
  return {
    mode,
    levels,
    lease: settings.leaseMs,
    retry: { attempts, backoff: settings.backoffMs, maxBackoff: settings.maxBackoffMs, place },
    limits: { perKey: settings.keyLimit, perQueue: settings.queueLimit },
    patience: settings.patienceMs,
    history: settings.historyMs,
  };
}
