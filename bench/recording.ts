import type { Calibration } from "./calibration.ts";
import type { LeftOut, Remark, Sample } from "./record.ts";
import type { Subject } from "./subject.ts";
import type { Measured, Workload } from "./workload.ts";

/** Everything that was measured, and what was not and why. */
export class Recording {
  readonly #samples: Sample[] = [];
  readonly #remarks = new Map<string, Remark>();
  readonly #broken = new Set<string>();
  readonly #leftOut = new Map<string, LeftOut>();

  add(workload: Workload, subject: Subject, round: number, machine: Calibration, measured: Measured): void {
    const { values, remarks = [], broken = false } = measured;
    this.#samples.push({ workload: workload.name, subject: subject.name, round, values, machine });
    for (const text of remarks) this.remark(workload, subject, text);
    if (broken) this.#broken.add(subject.name);
  }

  /** One of a kind per workload and subject: the last round's. */
  remark(workload: Workload, subject: Subject, text: string): void {
    const kind = text.replaceAll(/[\d,.]+/g, "");
    this.#remarks.set(`${workload.name} ${subject.name} ${kind}`, {
      workload: workload.title,
      subject: subject.title,
      text,
    });
  }

  /** Told once for all workloads that share the reason. */
  leaveOut(workload: string, subject: Subject, reason: string): void {
    const name = `${subject.name} ${reason}`;
    const workloads = new Set(this.#leftOut.get(name)?.workloads).add(workload);
    this.#leftOut.set(name, { subject: subject.title, reason, workloads: [...workloads] });
  }

  get samples(): readonly Sample[] {
    return this.#samples;
  }

  get leftOut(): readonly LeftOut[] {
    return [...this.#leftOut.values()];
  }

  get remarks(): readonly Remark[] {
    return [...this.#remarks.values()];
  }

  /** Whether a subject lost exclusivity, order or items. */
  isBroken(subject: string): boolean {
    return this.#broken.has(subject);
  }
}
