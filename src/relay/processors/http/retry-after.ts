/** A receiver that asks for more is asked again after this all the same. */
const LONGEST_MS = 3_600_000;

/** Seconds or a date, as RFC 9110 has it; anything else says nothing. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, LONGEST_MS);
  // Only a date with a name of a month is one; Date.parse would take a bare year for one too.
  const at = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.min(Math.max(0, at - now), LONGEST_MS);
}
