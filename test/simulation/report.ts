import type { ChunkResult } from "./pool.ts";
import type { Failure } from "./run-seeds.ts";

/** Enough to see what led to it. */
const LAST_LINES = 60;

export function describeFailure({ seed, violations, trace }: Failure): string {
  const [first] = violations;
  // What came after the violation is its consequence.
  const until = trace.findLastIndex((line) => Number.parseFloat(line) <= (first?.at ?? Infinity));
  return [
    `Seed ${seed} breaks ${first?.guarantee ?? "nothing"}: ${first?.says ?? ""}`,
    `  at ${first?.at ?? 0} ms, key ${first?.key ?? "(all)"}; ${violations.length} violation(s) in all`,
    ...trace.slice(Math.max(0, until + 1 - LAST_LINES), until + 1).map((line) => `  ${line}`),
    `Reproduce: node test/simulation/main.ts --seed ${seed}`,
  ].join("\n");
}

export function describeTotals(total: ChunkResult, elapsedMs: number): string {
  const { seeds, events, accepted, started, further, reports, alone, duplicates, rejectedEffects } = total;
  const faults = Object.entries(total.faults).filter(
    ([kind]) => kind !== "resume" && kind !== "heal" && kind !== "late",
  );
  const faultCount = faults.reduce((sum, [, count]) => sum + count, 0);
  const listed = faults
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(", ");
  const share = started === 0 ? 0 : (100 * duplicates) / started;
  return [
    `${seeds} seeds in ${(elapsedMs / 1000).toFixed(1)} s (${Math.round((seeds * 1000) / elapsedMs)} per second), ${events} events`,
    `${accepted} items accepted, ${started} runs of handlers`,
    `${further} of these behind another item under one lease, ${reports} reports on the way, ${alone} alone in their process`,
    `${faultCount} faults: ${listed}`,
    `${duplicates} runs succeeded for nothing (${share.toFixed(2)} %), each explained by a fault`,
    `${rejectedEffects} effects refused by their fence`,
  ].join("\n");
}
