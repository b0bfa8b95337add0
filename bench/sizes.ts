/** How much each workload does. Throughput is measured until the count is reached or the time box ends, whichever is first. */
export interface Sizes {
  readonly rounds: number;
  readonly submitItems: number;
  /** Worked off with keys that have lines. */
  readonly items: number;
  /** The same with a key per item: enough for the quickest to be at it for seconds. */
  readonly drainItems: number;
  readonly concurrencies: readonly number[];
  /**
   * The most that is not counted, before each measurement of submissions, of items that are worked off, and of an idle start: a process that has just
   * begun still compiles its code, and a server still grows.
   */
  readonly warmUpMs: number;
  readonly boxMs: number;
  /** Longer than the default poll of the slowest peer, 2 s, or it would be measured between two polls. */
  readonly keyedBoxMs: number;
  readonly latencyMs: number;
  /** Items per second while latency is measured under load: about half of what the slowest peer can take. */
  readonly rate: number;
  readonly keys: number;
  /** How many wait while submit and claim are measured. */
  readonly levels: readonly number[];
  /** How often, at each level: the median counts. */
  readonly cycles: number;
  /** For loading all levels of one subject; those that are not reached by then are left out for it. */
  readonly loadMs: number;
  readonly hot: number;
  readonly waiting: number;
}

export const FULL: Sizes = {
  rounds: 3,
  submitItems: 400_000,
  items: 20_000,
  drainItems: 60_000,
  concurrencies: [1, 16, 64],
  warmUpMs: 2_000,
  boxMs: 2_000,
  keyedBoxMs: 2_200,
  latencyMs: 1_000,
  rate: 400,
  keys: 1_000,
  levels: [1_000, 10_000, 100_000, 1_000_000],
  cycles: 5,
  loadMs: 120_000,
  hot: 100_000,
  waiting: 100_000,
};

export const QUICK: Sizes = {
  ...FULL,
  rounds: 1,
  items: 6_000,
  drainItems: 6_000,
  concurrencies: [64],
  warmUpMs: 200,
  boxMs: 300,
  keyedBoxMs: 500,
  latencyMs: 300,
  levels: [1_000, 20_000],
  cycles: 2,
  loadMs: 4_000,
  hot: 10_000,
  waiting: 10_000,
};

/** Those that can be set from the command line. */
export type Settable = Partial<
  Pick<
    Sizes,
    "rounds" | "items" | "drainItems" | "concurrencies" | "rate" | "keys" | "levels" | "loadMs" | "hot" | "waiting"
  >
>;
