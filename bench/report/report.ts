/** What one or several runs found, ready to be shown in whatever form. */
import type { LeftOut, Remark, RunRecord, SubjectRecord, WorkloadRecord } from "../record.ts";
import { WORKLOAD_GROUPS } from "../subject.ts";
import type { Metric } from "../workload.ts";
import { type Quietness, quietnessOf } from "./quietness.ts";
import { ratioOf, type Rounds, type StatedSpread, statedSpread } from "./ratios.ts";
import { type Summary, summarize } from "./statistics.ts";

export interface Report {
  /** Oldest first. */
  readonly runs: readonly RunRecord[];
  readonly subjects: readonly SubjectRecord[];
  readonly rows: readonly Row[];
  readonly comparisons: readonly Comparison[];
  readonly spread: StatedSpread | undefined;
  readonly quietness: Quietness;
  readonly missing: readonly { readonly subject: string; readonly reason: string }[];
  readonly leftOut: readonly LeftOut[];
  readonly remarks: readonly Remark[];
}

/** One metric of one workload. */
export interface Row {
  readonly workload: WorkloadRecord;
  readonly metric: Metric;
  readonly title: string;
  /** By subject. */
  readonly rounds: ReadonlyMap<string, Rounds>;
  readonly figures: ReadonlyMap<string, Summary>;
}

/** Baton on one store, against others. */
export interface Comparison {
  readonly baseline: SubjectRecord;
  /** Whether the others keep an accepted item as safely. */
  readonly sameClass: boolean;
  readonly others: readonly SubjectRecord[];
  readonly rows: readonly ComparedRow[];
}

export interface ComparedRow {
  readonly row: Row;
  /** One for each of the others, where there is one. */
  readonly ratios: readonly (Summary | undefined)[];
}

export function reportOn(records: readonly RunRecord[]): Report {
  const runs = records.toSorted((a, b) => a.at.localeCompare(b.at));
  const subjects = unique(runs.flatMap((run) => run.subjects));
  const rows = rowsOf(runs);
  const comparisons = comparisonsOf(subjects, rows);
  const ratios = comparisons.flatMap((one) => one.rows.flatMap((row) => row.ratios)).filter((one) => one !== undefined);
  return {
    runs,
    subjects,
    rows,
    comparisons,
    spread: statedSpread(ratios),
    quietness: quietnessOf(runs),
    missing: distinct(runs.flatMap((run) => run.missing)),
    leftOut: distinct(runs.flatMap((run) => run.leftOut)),
    remarks: distinct(runs.flatMap((run) => run.remarks)),
  };
}

function rowsOf(runs: readonly RunRecord[]): readonly Row[] {
  // In the order of the groups, whatever was measured first.
  const workloads = unique(runs.flatMap((run) => run.workloads)).toSorted(
    (a, b) => WORKLOAD_GROUPS.indexOf(a.group) - WORKLOAD_GROUPS.indexOf(b.group),
  );
  return workloads.flatMap((workload) => {
    const versions = runs.flatMap((run) => run.workloads).filter(({ name }) => name === workload.name);
    return unique(versions.flatMap(({ metrics }) => metrics))
      .map((metric) => rowOf(runs, workload, metric))
      .filter(({ figures }) => figures.size > 0);
  });
}

function rowOf(runs: readonly RunRecord[], workload: WorkloadRecord, metric: Metric): Row {
  const rounds = new Map<string, Map<string, number>>();
  for (const [index, run] of runs.entries()) {
    for (const { subject, round, values, ...sample } of run.samples) {
      if (sample.workload !== workload.name) continue;
      const own = rounds.get(subject) ?? new Map<string, number>();
      for (const [part, value] of [values[metric.name] ?? []].flat().entries())
        own.set(`${index} ${round} ${part}`, value);
      if (own.size > 0) rounds.set(subject, own);
    }
  }
  return {
    workload,
    metric,
    title: [workload.title, metric.title].filter((part) => part !== "").join(", "),
    rounds,
    figures: new Map(Array.from(rounds, ([subject, values]) => [subject, summarize([...values.values()])])),
  };
}

function comparisonsOf(subjects: readonly SubjectRecord[], rows: readonly Row[]): readonly Comparison[] {
  const baselines = subjects.filter(({ baseline }) => baseline === true).toSorted(mainFirst);
  return [true, false].flatMap((sameClass) =>
    baselines.flatMap((baseline) => {
      // Across the classes a variant would only say again what its main line has said.
      if (!sameClass && baseline.variant === true) return [];
      const others = subjects.filter(
        (other) => isComparedWith(other, baseline) && (other.class === baseline.class) === sameClass,
      );
      const compared = comparedRows(baseline, others, rows);
      const measured = others.filter((_, index) => compared.some(({ ratios }) => ratios[index] !== undefined));
      if (measured.length === 0) return [];
      return [{ baseline, sameClass, others: measured, rows: comparedRows(baseline, measured, rows) }];
    }),
  );
}

function comparedRows(
  baseline: SubjectRecord,
  others: readonly SubjectRecord[],
  rows: readonly Row[],
): readonly ComparedRow[] {
  return rows
    .map((row) => {
      const own = row.rounds.get(baseline.name);
      const ratios = others.map(({ name }) => {
        const theirs = row.rounds.get(name);
        // A factor is a comparison already.
        if (own === undefined || theirs === undefined || row.metric.unit === "×") return undefined;
        return ratioOf(own, theirs, row.metric.better);
      });
      return { row, ratios };
    })
    .filter(({ ratios }) => ratios.some((ratio) => ratio !== undefined));
}

function isComparedWith({ name, against }: SubjectRecord, baseline: SubjectRecord): boolean {
  return name !== baseline.name && (against === undefined || against === baseline.name);
}

function mainFirst(a: SubjectRecord, b: SubjectRecord): number {
  return Number(a.variant === true) - Number(b.variant === true);
}

/** The last of each name counts, in the place of the first: what was measured later was described later. */
function unique<T extends { readonly name: string }>(all: readonly T[]): readonly T[] {
  return [...new Map(all.map((one) => [one.name, one])).values()];
}

function distinct<T>(all: readonly T[]): readonly T[] {
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}
