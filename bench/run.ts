import { calibrate, warmUpCalibration } from "./calibration.ts";
import { type Choice, reasonAgainst, type Step, stepsOf } from "./order.ts";
import type { Progress } from "./progress.ts";
import type { Recording } from "./recording.ts";
import { reasonOf } from "./report/reason.ts";
import { Scene } from "./scene.ts";
import type { Sizes } from "./sizes.ts";
import type { Stores } from "./stores.ts";
import type { Subject } from "./subject.ts";
import type { Measured, Workload } from "./workload.ts";

export interface Plan extends Choice {
  readonly sizes: Sizes;
  readonly stores: Stores;
}

/** `kept` is called after every step: a run that is cut off leaves what it has. */
export async function runAll(plan: Plan, recording: Recording, progress: Progress, kept: () => void): Promise<void> {
  leaveOut(plan, recording);
  const steps = stepsOf(plan);
  progress.begins(steps.length);
  await warmUpCalibration();
  for (const step of steps) {
    const { workload, subject, round } = step;
    progress.starts(`${workload.title} · ${subject.title} · round ${round + 1}`);
    try {
      const machine = await calibrate();
      const measured = await measure(step, plan);
      recording.add(workload, subject, round, machine, measured);
      progress.ended(measured, workload.metrics(plan.sizes));
    } catch (error) {
      const text = `failed: ${reasonOf(error)}`;
      recording.remark(workload, subject, text);
      progress.failed(text);
    }
    kept();
  }
}

function leaveOut({ workloads, subjects }: Choice, recording: Recording): void {
  for (const workload of workloads) {
    for (const subject of subjects) {
      const reason = reasonAgainst(workload, subject);
      if (reason !== undefined) recording.leaveOut(widest(workload, subject, workloads), subject, reason);
    }
  }
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
