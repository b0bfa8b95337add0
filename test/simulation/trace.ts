import { createHash } from "node:crypto";
import type { Happening } from "./history.ts";

/** One line per happening: time, what, and its particulars. */
export function traceLine(happening: Happening): string {
  const { at, type, ...rest } = happening;
  const particulars = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`);
  return `${at.toFixed(2).padStart(12)}  ${type.padEnd(16)} ${particulars.join(" ")}`;
}

/** Two runs of one seed are the same run: every happening, every time, every order. */
export function traceHash(happenings: readonly Happening[]): string {
  const hash = createHash("sha256");
  for (const happening of happenings) hash.update(traceLine(happening)).update("\n");
  return hash.digest("hex");
}

/** What concerns one key; faults concern all. */
export function traceOfKey(happenings: readonly Happening[], key: string | undefined): string[] {
  const leases = new Set<number>();
  const lines: string[] = [];
  for (const happening of happenings) {
    if (!concerns(happening, key, leases)) continue;
    lines.push(traceLine(happening));
  }
  return lines;
}

function concerns(happening: Happening, key: string | undefined, leases: Set<number>): boolean {
  if (key === undefined) return true;
  if (happening.type === "store-submit") return happening.entries.some((entry) => entry.key === key);
  if (happening.type === "fault" || happening.type === "process" || happening.type === "calm") return true;
  if ("key" in happening && happening.key !== undefined) {
    if (happening.key !== key) return false;
    if ("lease" in happening && happening.lease !== undefined) leases.add(happening.lease);
    return true;
  }
  return "lease" in happening && leases.has(happening.lease);
}
