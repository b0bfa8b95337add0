import type { Subject } from "./subject.ts";
import { BASELINES, isComparedWith } from "./subjects.ts";
import { median } from "./report/statistics.ts";
import type { Measured, Metric, Workload } from "./workload.ts";
import type { Sizes } from "./sizes.ts";

export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** How many times better each baseline is: above 1 it wins, below 1 it loses. */
  readonly ratios: Readonly<Record<string, number>>;
}

export interface Row {
  readonly workload: string;
  readonly metric: Metric;
  readonly title: string;
  /** By subject. */
  readonly figures: ReadonlyMap<string, Figure>;
}

/** What a subject does not do, and why. */
export interface LeftOut {
  readonly subject: string;
  readonly reason: string;
  readonly workloads: readonly string[];
}

export interface Remark {
  readonly workload: string;
  readonly subject: string;
  readonly text: string;
}

/** Everything that was measured, and what was not and why. */
export class Results {
  readonly #values = new Map<string, number[]>();
  readonly #remarks = new Map<string, Remark>();
  readonly #broken = new Set<string>();
  readonly #leftOut = new Map<string, LeftOut>();

  add(workload: Workload, subject: Subject, { values, remarks = [], broken = false }: Measured): void {
    for (const [metric, value] of Object.entries(values)) {
      const name = nameOf(workload.name, metric, subject.name);
      this.#values.set(name, [...(this.#values.get(name) ?? []), value]);
    }
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

  rows(workloads: readonly Workload[], subjects: readonly Subject[], sizes: Sizes): readonly Row[] {
    return workloads.flatMap((workload) =>
      workload.metrics(sizes).map((metric) => ({
        workload: workload.name,
        metric,
        title: [workload.title, metric.title].filter((part) => part !== "").join(", "),
        figures: this.#figures(workload, metric, subjects),
      })),
    );
  }

  #figures(workload: Workload, metric: Metric, subjects: readonly Subject[]): ReadonlyMap<string, Figure> {
    const figures = new Map<string, Figure>();
    for (const subject of subjects) {
      const values = this.#values.get(nameOf(workload.name, metric.name, subject.name));
      if (values === undefined) continue;
      const middle = median(values);
      const ratios = this.#ratios(workload, metric, subject, middle);
      figures.set(subject.name, { median: middle, min: Math.min(...values), max: Math.max(...values), ratios });
    }
    return figures;
  }

  #ratios({ name }: Workload, metric: Metric, subject: Subject, other: number): Record<string, number> {
    const ratios: Record<string, number> = {};
    // A factor is a comparison already.
    if (metric.unit === "×") return ratios;
    for (const baseline of BASELINES) {
      const own = this.#values.get(nameOf(name, metric.name, baseline));
      if (own === undefined || !isComparedWith(subject, baseline)) continue;
      ratios[baseline] = metric.better === "higher" ? median(own) / other : other / median(own);
    }
    return ratios;
  }
}

function nameOf(workload: string, metric: string, subject: string): string {
  return `${workload}\0${metric}\0${subject}`;
}
