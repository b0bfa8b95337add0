/** The value below which `share` of them lie (0 to 1). */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new RangeError("There is no quantile of nothing.");
  return value;
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
