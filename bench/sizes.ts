/** How much each workload does. Throughput is measured until the count is reached or the time box ends, whichever is first. */
export interface Sizes {
  readonly rounds: number;
  readonly submitItems: number;
  readonly items: number;
  readonly boxMs: number;
  /** Longer than the default poll of the slowest peer, 2 s, or it would be measured between two polls. */
  readonly keyedBoxMs: number;
  readonly latencyMs: number;
  readonly keys: number;
  /** How many wait while submit and claim are measured. */
  readonly levels: readonly number[];
  /** How often, at each level: the median counts. */
  readonly cycles: number;
  /** A level that is not reached in this time is left out for that subject. */
  readonly loadMs: number;
  readonly hot: number;
  readonly waiting: number;
}

export const FULL: Sizes = {
  rounds: 3,
  submitItems: 200_000,
  items: 20_000,
  boxMs: 1_000,
  keyedBoxMs: 2_200,
  latencyMs: 800,
  keys: 1_000,
  levels: [1_000, 100_000, 1_000_000],
  cycles: 5,
  loadMs: 20_000,
  hot: 100_000,
  waiting: 100_000,
};

export const QUICK: Sizes = {
  ...FULL,
  rounds: 1,
  items: 8_000,
  boxMs: 400,
  keyedBoxMs: 600,
  latencyMs: 400,
  levels: [1_000, 100_000],
  cycles: 2,
  loadMs: 4_000,
  hot: 20_000,
  waiting: 30_000,
};
