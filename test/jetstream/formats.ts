/** How the server writes moments and reads durations. */

/** A moment in the server's JSON when there is none. */
export const NO_TIME = "0001-01-01T00:00:00Z";

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 1e-3, ns: 1e-6 };

/** RFC 3339 without zeros at the end of the fraction. */
export function writeTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.?0*Z$/, "Z");
}

export function writeNanos(wallMs: number): string {
  return `${Math.floor(wallMs)}000000`;
}

export function nanosToMs(nanos: number | undefined): number {
  return (nanos ?? 0) / 1e6;
}

/** A duration such as 1m30s, or a bare number of seconds. */
export function readDurationMs(text: string): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  if (!/^(\d+(\.\d+)?(h|ms|us|ns|m|s))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)/g)) {
    sum += Number(amount) * (UNIT_MS[unit ?? ""] ?? 0);
  }
  return sum;
}
