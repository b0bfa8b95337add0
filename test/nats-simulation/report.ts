import type { ChunkResult } from "./pool.ts";
import type { Failure } from "./run.ts";

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
    `Reproduce: node test/nats-simulation/main.ts --seed ${seed}`,
  ].join("\n");
}

export function briefly({ seed, violations }: Failure): string {
  const [first] = violations;
  return `seed ${seed}: ${first?.guarantee ?? ""}: ${(first?.says ?? "").slice(0, 300)}`;
}

export function describeTotals(total: ChunkResult, elapsedMs: number): string {
  const { seeds, events, accepted, grants, duplicates, slowestDrainMs, failures } = total;
  const faults = Object.entries(total.faults)
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(", ");
  return [
    `${seeds} seeds in ${(elapsedMs / 1000).toFixed(1)} s, ${events} events, ${failures.length} failed`,
    `${accepted} items accepted, ${grants} leases, at most ${slowestDrainMs} ms until all was done`,
    `faults: ${faults}`,
    `${duplicates} items ended twice, each explained by a fault`,
  ].join("\n");
}
