import type { Metric } from "../workload.ts";

export function formatNumber(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function formatValue(value: number, unit: Metric["unit"]): string {
  return unit === "×" ? `${formatNumber(value)} ×` : `${formatNumber(value)} ${unit}`;
}

export function formatRatio(ratio: number | undefined): string {
  if (ratio === Number.POSITIVE_INFINITY) return "∞";
  return ratio === undefined ? "" : `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(ratio >= 1 ? 1 : 2)} ×`;
}
