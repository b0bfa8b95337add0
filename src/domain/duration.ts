import { InvalidInput } from "./errors.ts";

/** A length of time: milliseconds, or a number with a unit, as in `"250ms"`, `"30s"`, `"1.5h"`, `"1d"`. */
export type Duration = number | string;

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** About a century. Longer times are mistakes, and larger numbers do not fit into every store. */
const LONGEST_MS = 36_525 * 86_400_000;

const PATTERN = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/;

/** Milliseconds, whole and not negative. `field` is the name under which the user gave the value. */
export function parseDuration(value: Duration, field: string): number {
  if (typeof value === "number") {
    if (value >= 0 && value <= LONGEST_MS) return Math.round(value);
  } else if (typeof value === "string") {
    const [, count, unit] = PATTERN.exec(value.trim()) ?? [];
    const unitMs = unit === undefined ? undefined : UNITS_MS[unit];
    const ms = count === undefined || unitMs === undefined ? Infinity : Number(count) * unitMs;
    if (ms <= LONGEST_MS) return Math.round(ms);
  }
  throw new InvalidInput(
    field,
    value,
    "a length of time such as 250ms, 30s, 5m, 1h or 1d, or a number of milliseconds, at most 36525d",
  );
}

/** The shortest exact writing: 90000 is `90s`, 120000 is `2m`. */
export function formatDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"]) {
    const unitMs = UNITS_MS[unit];
    if (unitMs !== undefined && ms >= unitMs && ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}
