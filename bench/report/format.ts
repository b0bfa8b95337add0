import type { Metric } from "../workload.ts";
import { isTie } from "./ratios.ts";
import type { Summary } from "./statistics.ts";

export function formatNumber(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function formatValue(value: number, unit: Metric["unit"]): string {
  return unit === "×" ? `${formatNumber(value)} ×` : `${formatNumber(value)} ${unit}`;
}

export function formatTimes(ratio: number): string {
  return `${digitsOf(ratio)} ×`;
}

export function formatRange({ low, high }: Summary): string {
  return `${formatNumber(low)} – ${formatNumber(high)}`;
}

/** The median, and the lowest and the highest round where there are several. */
export function formatSummary(summary: Summary | undefined): string {
  if (summary === undefined) return "";
  return summary.count === 1
    ? formatNumber(summary.median)
    : `${formatNumber(summary.median)} (${formatRange(summary)})`;
}

/** The same of a ratio; a tie is marked. */
export function formatRatio(ratio: Summary | undefined): string {
  if (ratio === undefined) return "";
  const { median, low, high, count } = ratio;
  const range = count === 1 ? "" : ` (${digitsOf(low)} – ${digitsOf(high)})`;
  return `${isTie(ratio) ? "≈ " : ""}${formatTimes(median)}${range}`;
}

function digitsOf(ratio: number): string {
  if (ratio === Number.POSITIVE_INFINITY) return "∞";
  return ratio.toFixed(ratio >= 10 ? 0 : ratio >= 2 ? 1 : 2);
}
