/** Whether the machine had nothing else to do while it was measured. */
import type { RunRecord } from "../record.ts";
import { quantile, type Summary, summarize } from "./statistics.ts";

/** Of all cores, used by others. */
const BUSY_SHARE = 0.15;
/** How many times longer than in the run's quiet moments the loop takes when it is interrupted. */
const SLOW_LOOP = 1.3;
/** A few moments of noise are in every run, and the median does without them. */
const FEW = 0.1;

export interface Quietness {
  readonly quiet: boolean;
  readonly measurements: number;
  /** How many were made at a moment when the machine was not quiet. */
  readonly disturbed: number;
  readonly loopMs: Summary;
  readonly syncMs: Summary;
  readonly othersShare: Summary | undefined;
}

export function quietnessOf(runs: readonly RunRecord[]): Quietness {
  const disturbed = runs.reduce((sum, run) => sum + disturbedIn(run), 0);
  const all = runs.flatMap(({ samples }) => samples.map(({ machine }) => machine));
  const shares = all.flatMap(({ othersShare }) => othersShare ?? []);
  return {
    quiet: disturbed <= all.length * FEW,
    measurements: all.length,
    disturbed,
    loopMs: summarize(all.map(({ loopMs }) => loopMs)),
    syncMs: summarize(all.map(({ syncMs }) => syncMs)),
    othersShare: shares.length === 0 ? undefined : summarize(shares),
  };
}

function disturbedIn({ samples }: RunRecord): number {
  if (samples.length === 0) return 0;
  const undisturbed = quantile(
    samples.map(({ machine }) => machine.loopMs),
    0.1,
  );
  return samples.filter(
    ({ machine: { loopMs, othersShare = 0 } }) => othersShare > BUSY_SHARE || loopMs > undisturbed * SLOW_LOOP,
  ).length;
}
