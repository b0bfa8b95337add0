/**
 * What a run leaves behind: a file in results/ that holds everything a report needs, so that one can be made later, from
 * several runs, or on another machine. It knows subjects and workloads by what they said of themselves at the time.
 */
import type { Calibration } from "./calibration.ts";
import type { Machine } from "./report/machine.ts";
import type { Subject } from "./subject.ts";
import type { Metric, Workload } from "./workload.ts";

/** Raised when older files can no longer be read. */
export const RECORD_FORMAT = 1;

export type SubjectRecord = Pick<
  Subject,
  "name" | "title" | "durability" | "class" | "setup" | "package" | "variant" | "baseline" | "ceiling" | "against"
>;

export interface WorkloadRecord extends Pick<Workload, "name" | "group" | "title"> {
  readonly metrics: readonly Metric[];
}

/** One measurement of one subject. */
export interface Sample {
  readonly workload: string;
  readonly subject: string;
  readonly round: number;
  /** By the metric's name; several where a workload repeats inside. */
  readonly values: Readonly<Record<string, number | readonly number[]>>;
  /** What the machine was like right before it. */
  readonly machine: Calibration;
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

export interface RunRecord {
  readonly format: typeof RECORD_FORMAT;
  readonly at: string;
  readonly command: string;
  readonly seed: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly machine: Machine;
  /** Such as "bullmq 6.7.0". */
  readonly versions: readonly string[];
  /** Such as "Redis 7.0.15", with how it is set. */
  readonly stores: readonly { readonly name: string; readonly settings: string }[];
  readonly subjects: readonly SubjectRecord[];
  readonly workloads: readonly WorkloadRecord[];
  readonly samples: readonly Sample[];
  /** Subjects that could not be had, and why. */
  readonly missing: readonly { readonly subject: string; readonly reason: string }[];
  readonly leftOut: readonly LeftOut[];
  readonly remarks: readonly Remark[];
}
