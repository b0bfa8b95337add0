import type { LeftOut, Remark, Row } from "../results.ts";
import type { Subject } from "../subject.ts";
import { BASELINES, isComparedWith } from "../subjects.ts";
import type { Machine } from "./machine.ts";

/** What a run found, ready to be shown in whatever form. */
export interface Report {
  readonly at: Date;
  readonly command: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly machine: Machine;
  /** Such as "BullMQ 6.7.0", "Redis 7.0.15". */
  readonly versions: readonly string[];
  readonly subjects: readonly Subject[];
  /** Subjects that could not be had, and why. */
  readonly missing: readonly { readonly subject: string; readonly reason: string }[];
  readonly leftOut: readonly LeftOut[];
  readonly rows: readonly Row[];
  readonly remarks: readonly Remark[];
}

/** Below this, two figures of one run are a tie: clean runs of one configuration differ by up to 1.7 ×. */
export const TIE = 1.5;

export function headline({ machine, versions, rounds, seconds }: Report): readonly string[] {
  return [
    `${machine.processor}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}, SQLite ${machine.sqlite}`,
    versions.join(", "),
    `Payload 200 bytes; a producer and a worker process; median of ${rounds} interleaved ${rounds === 1 ? "round" : "rounds"}; ${Math.round(seconds)} s in all.`,
  ];
}

/** Everything that was not measured, and why. */
export function gaps({ missing, leftOut }: Report): readonly string[] {
  return [
    ...missing.map(({ subject, reason }) => `${subject}: ${reason}`),
    ...leftOut.map(({ subject, reason, workloads }) => `${subject}: ${reason} (${workloads.join(", ")})`),
  ];
}

export interface Comparison {
  readonly baseline: Subject;
  readonly others: readonly Subject[];
  /** Those that compare something: a ratio for each of the others, where there is one. */
  readonly rows: readonly { readonly title: string; readonly ratios: readonly (number | undefined)[] }[];
}

/** One for each baseline that was measured and has anything to be compared with. */
export function comparisons({ rows, subjects }: Report): readonly Comparison[] {
  return BASELINES.flatMap((name) => {
    const baseline = subjects.find((subject) => subject.name === name);
    const others = subjects.filter((subject) => isComparedWith(subject, name));
    if (baseline === undefined || others.length === 0) return [];
    const compared = rows.map(({ title, figures }) => ({
      title,
      ratios: others.map((other) => figures.get(other.name)?.ratios[name]),
    }));
    return [{ baseline, others, rows: compared.filter(({ ratios }) => ratios.some((ratio) => ratio !== undefined)) }];
  });
}
