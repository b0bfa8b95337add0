import type { Progress } from "./progress.ts";
import { reasonOf } from "./report/reason.ts";
import type { Results } from "./results.ts";
import { Scene } from "./scene.ts";
import type { Sizes } from "./sizes.ts";
import type { Stores } from "./stores.ts";
import type { Subject } from "./subject.ts";
import type { Measured, Workload } from "./workload.ts";

export interface Plan {
  readonly workloads: readonly Workload[];
  readonly subjects: readonly Subject[];
  readonly sizes: Sizes;
  readonly stores: Stores;
}

interface Step {
  readonly workload: Workload;
  readonly subject: Subject;
  readonly round: number;
}

/** Every subject in turn, round after round, so that a slow minute of the machine meets them all. */
export async function runAll(plan: Plan, results: Results, progress: Progress): Promise<void> {
  const steps = stepsOf(plan, results);
  progress.begins(steps.length);
  for (const step of steps) {
    progress.starts(`${step.workload.title} · ${step.subject.title} · round ${step.round + 1}`);
    try {
      const measured = await measure(step, plan);
      results.add(step.workload, step.subject, measured);
      progress.ended(measured, step.workload.metrics(plan.sizes));
    } catch (error) {
      const text = `failed: ${reasonOf(error)}`;
      results.remark(step.workload, step.subject, text);
      progress.failed(text);
    }
  }
}

function stepsOf({ workloads, subjects, sizes }: Plan, results: Results): readonly Step[] {
  const steps: Step[] = [];
  for (const workload of workloads) {
    const able = subjects.filter((subject) => {
      const reason = reasonAgainst(workload, subject);
      if (reason !== undefined) results.leaveOut(widest(workload, subject, workloads), subject, reason);
      return reason === undefined;
    });
    for (let round = 0; round < (workload.once === true ? 1 : sizes.rounds); round += 1) {
      const turn = able.filter((subject) => round === 0 || subject.variant !== true);
      // Each round begins with another, so that nobody always follows the same neighbour's mess.
      turn.push(...turn.splice(0, turn.length === 0 ? 0 : round % turn.length));
      steps.push(...turn.map((subject) => ({ workload, subject, round })));
    }
  }
  return steps;
}

function reasonAgainst({ group, exclusive }: Workload, { without = {} }: Subject): string | undefined {
  return without[group] ?? (exclusive ? without.keyed : undefined);
}

/** The group, where the subject does nothing of it. */
function widest({ name, group }: Workload, subject: Subject, workloads: readonly Workload[]): string {
  const others = workloads.filter((workload) => workload.group === group);
  return others.every((workload) => reasonAgainst(workload, subject) !== undefined) ? group : name;
}

async function measure({ workload, subject }: Step, { stores, sizes }: Plan): Promise<Measured> {
  const store = await stores.get(subject.store);
  const fresh = await store.fresh();
  try {
    await using scene = await Scene.open(subject, fresh, workload.exclusive);
    return await workload.measure(scene, sizes);
  } finally {
    await fresh.drop();
  }
}
