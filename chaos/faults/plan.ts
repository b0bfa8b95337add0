/** What will happen, and when: drawn from the seed before the run begins, so that the seed alone tells the story. */
import { Random } from "../../test/kit/random.ts";
import type { Store } from "../scene.ts";
import type { Settings } from "../settings.ts";

export type FaultKind =
  /** SIGKILL of a worker; another takes its place. */
  | "kill"
  /** SIGSTOP of a worker, for longer than its lease, then SIGCONT. */
  | "stop"
  /** A worker's event loop is blocked. */
  | "block"
  /** SIGKILL of every worker and submitter at one moment. */
  | "kill-all"
  /** SIGKILL of the store's server (in a cluster, of the stream's leader), which is started again. */
  | "store"
  /** One process, or all, cannot reach the store. */
  | "cut"
  | "cut-all"
  /** What one process sends arrives late, after the fault. */
  | "requests-held"
  /** What one process is sent arrives late, after the fault. */
  | "replies-held"
  /** What one process sends is done; what it is told is lost. */
  | "replies-lost"
  /** Everything takes longer, for one process or for all. */
  | "slow"
  | "slow-all";

export interface PlannedFault {
  readonly atMs: number;
  readonly kind: FaultKind;
  readonly forMs: number;
  /** Chooses whom it hits, from those who are well at that moment. From 0 up to 1. */
  readonly target: number;
  readonly delayMs: number;
}

/** How often each comes, against the others. */
const SHARES: Readonly<Record<Store, Partial<Record<FaultKind, number>>>> = {
  sqlite: { kill: 5, stop: 5, block: 3, "kill-all": 2 },
  nats: withServer(2),
  "nats-cluster": withServer(4),
  postgres: withServer(2),
  redis: withServer(2),
};

/** @param store how often the server itself is hit */
function withServer(store: number): Partial<Record<FaultKind, number>> {
  return {
    kill: 4,
    stop: 4,
    block: 2,
    store,
    cut: 2,
    "cut-all": 1,
    "requests-held": 2,
    "replies-held": 2,
    "replies-lost": 2,
    slow: 1,
    "slow-all": 1,
  };
}

export function planFaults(settings: Settings): readonly PlannedFault[] {
  const { forMs, faultEveryMs, leaseMs, seed, store } = settings;
  const random = new Random(seed);
  const bag = Object.entries(SHARES[store])
    .filter(([kind]) => settings.faults?.some((wanted) => wanted === kind) ?? true)
    .flatMap(([kind, share]) => Array.from({ length: share }, () => kind));
  const faults: PlannedFault[] = [];
  // Time to begin, and time enough for the last one to end within the run.
  const until = forMs - 2 * leaseMs;
  let atMs = faultEveryMs / 2;
  while (atMs < until) {
    const kind = random.pick(bag);
    if (!isKind(kind)) throw new Error(`There is no fault ${kind}.`);
    faults.push({
      atMs,
      kind,
      forMs: Math.round(leaseMs * lengthOf(kind, random.next())),
      target: random.next(),
      delayMs: random.between(leaseMs / 20, leaseMs / 5),
    });
    atMs += random.between(faultEveryMs / 2, faultEveryMs * 1.5);
  }
  return faults;
}

/** In leases. */
function lengthOf(kind: FaultKind, dice: number): number {
  switch (kind) {
    case "kill":
    case "kill-all":
      // Until another takes the place.
      return 0.1;
    case "block":
      return 3;
    case "store":
      // Sometimes leases survive it, and sometimes they do not.
      return 0.1 + dice * 1.4;
    case "stop":
      return 1.5 + dice * 1.5;
    case "cut":
    case "cut-all":
    case "requests-held":
    case "replies-held":
    case "replies-lost":
    case "slow":
    case "slow-all":
      return 0.25 + dice * 2;
  }
}

function isKind(text: string): text is FaultKind {
  return Object.values(SHARES).some((shares) => text in shares);
}
