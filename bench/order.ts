import { randomNumbers, shuffled } from "./random.ts";
import type { Subject } from "./subject.ts";
import type { Workload } from "./workload.ts";

export interface Step {
  readonly workload: Workload;
  readonly subject: Subject;
  /** From 0. */
  readonly round: number;
}

export interface Choice {
  readonly workloads: readonly Workload[];
  readonly subjects: readonly Subject[];
  readonly rounds: number;
  readonly seed: number;
}

/**
 * Round after round, in each every workload, in each every subject: what is compared is measured within moments of each
 * other, and the rounds of one figure lie minutes apart, so that they show how much the machine changes. The order of
 * the subjects is drawn anew each time, so that nobody always follows the same neighbour's mess.
 */
export function stepsOf({ workloads, subjects, rounds, seed }: Choice): readonly Step[] {
  const random = randomNumbers(seed);
  const steps: Step[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const turn = workloads.filter((workload) => workload.long !== true);
    if (round === 0) turn.push(...workloads.filter((workload) => workload.long === true));
    for (const workload of turn) {
      const able = subjects.filter((subject) => reasonAgainst(workload, subject) === undefined);
      steps.push(...shuffled(able, random).map((subject) => ({ workload, subject, round })));
    }
  }
  return steps;
}

/** Why a subject takes no part in a workload, if it does not. */
export function reasonAgainst({ group, exclusive }: Workload, { without = {} }: Subject): string | undefined {
  return without[group] ?? (exclusive ? without.keyed : undefined);
}
