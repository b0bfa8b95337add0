const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** For people: `350ms`, `4.2s`, `2m 5s`, `3h 10m`. */
export function roughly(ms: number): string {
  const length = Math.max(0, Math.round(ms));
  if (length < 1_000) return `${length}ms`;
  if (length < 10_000) return `${(length / 1_000).toFixed(1)}s`;
  const index = UNITS.findIndex(([, unitMs]) => length >= unitMs);
  const [unit, unitMs] = UNITS[index] ?? ["s", 1_000];
  const smaller = UNITS[index + 1];
  const whole = Math.floor(length / unitMs);
  const rest = smaller === undefined ? 0 : Math.floor((length % unitMs) / smaller[1]);
  return smaller === undefined || rest === 0 ? `${whole}${unit}` : `${whole}${unit} ${rest}${smaller[0]}`;
}

export function ago(at: number): string {
  return `${roughly(Date.now() - at)} ago`;
}

export function ahead(at: number): string {
  const leftMs = at - Date.now();
  return leftMs > 0 ? `in ${roughly(leftMs)}` : "now";
}

export function dateTime(at: number): string {
  return new Date(at).toISOString();
}
