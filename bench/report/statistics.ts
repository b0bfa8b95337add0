/** The value below which `share` of them lie (0 to 1). */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new RangeError("There is no quantile of nothing.");
  return value;
}

/** Of an even number of values it is between the two in the middle: the larger would favour whoever is divided. */
export function median(values: readonly number[]): number {
  const upper = quantile(values, 0.5);
  if (values.length % 2 === 1) return upper;
  const lower = values.toSorted((a, b) => a - b)[values.length / 2 - 1] ?? upper;
  return lower === upper ? upper : (lower + upper) / 2;
}

/** What became of a figure over its rounds. */
export interface Summary {
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

export function summarize(values: readonly number[]): Summary {
  return { median: median(values), low: Math.min(...values), high: Math.max(...values), count: values.length };
}

/** How many times the rounds lie apart from their median, to the farther side: 1 when they agree. */
export function spreadOf({ median: middle, low, high }: Summary): number {
  return Math.max(high / middle, middle / low);
}
