/** The sizes of a run. The figures of the full run are those with which lease locks elsewhere were shown to be unsafe. */
import type { FaultKind } from "./faults/plan.ts";
import { KEYS, type Store } from "./scene.ts";

export interface Settings {
  readonly store: Store;
  readonly seed: number;
  /** How long faults go on. Draining comes on top. */
  readonly forMs: number;
  readonly workers: number;
  readonly submitters: number;
  readonly keys: number;
  readonly leaseMs: number;
  readonly faultEveryMs: number;
  /** On average, by each submitter. */
  readonly submitEveryMs: number;
  /** Of each submitter, before it ends. Undefined: as many as there is time for. */
  readonly calls?: number;
  /** When no more is submitted, how long it is waited until everything is done. */
  readonly drainMs: number;
  /** Instead of all that the store can suffer: these faults only. */
  readonly faults?: readonly FaultKind[];
  /** The name of a flaw that is planted on purpose, to see whether it is caught. */
  readonly control?: string;
}

const MINUTE_MS = 60_000;

const SUBMIT_EVERY_MS = 120;
/**
 * Three servers share the machine with all processes. With more than they can do, what is urgent would keep the rest waiting, as promised,
 * and whoever takes over a less urgent key would be called late.
 */
const CLUSTER_SUBMIT_EVERY_MS = 400;

/** Eight and eight, a lease of two seconds, a fault about every five. */
export function fullRun(store: Store, seed: number, minutes: number): Settings {
  return {
    store,
    seed,
    forMs: minutes * MINUTE_MS,
    workers: 8,
    submitters: 8,
    keys: KEYS,
    leaseMs: 2_000,
    faultEveryMs: 5_000,
    submitEveryMs: store === "nats-cluster" ? CLUSTER_SUBMIT_EVERY_MS : SUBMIT_EVERY_MS,
    // The promise is a minute; a little longer is waited, so that a failure is seen as what it is.
    drainMs: 70_000,
  };
}

/**
 * What a holder keeps in hand: a tenth of the lease, at least half a second, at most a quarter of the lease. As the guarantees
 * promise it, and said here once more, so that the checker does not ask the product what it promised.
 */
export function marginMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs / 10, 500), leaseMs / 4);
}

/**
 * As small and as quick as it can be and still show every flaw: for the test command. It goes by what was done, not by
 * time: on a machine with much else to do it takes longer, and shows the same.
 */
export function shortRun(store: Store, seed: number): Settings {
  return {
    store,
    seed,
    forMs: 3_500,
    workers: 2,
    submitters: 1,
    keys: 16,
    leaseMs: 500,
    faultEveryMs: 500,
    submitEveryMs: 8,
    calls: 300,
    drainMs: 6_000,
  };
}

/** A full run in small: for the test command, in half a minute. */
export function halfMinuteRun(store: Store, seed: number): Settings {
  return {
    store,
    seed,
    forMs: 20_000,
    workers: 4,
    submitters: 3,
    keys: 50,
    leaseMs: 2_000,
    faultEveryMs: 2_500,
    submitEveryMs: 80,
    drainMs: 40_000,
  };
}
