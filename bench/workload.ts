import type { Scene } from "./scene.ts";
import type { Sizes } from "./sizes.ts";
import type { WorkloadGroup } from "./subject.ts";

export interface Metric {
  readonly name: string;
  readonly title: string;
  readonly unit: "items/s" | "ms" | "µs/item" | "MiB" | "×";
  readonly better: "higher" | "lower";
}

export interface Measured {
  /** By the metric's name; several where it was measured again and again. What is missing could not be measured. */
  readonly values: Readonly<Record<string, number | readonly number[]>>;
  /** Promises broken while it ran, or what could not be measured: shown with the figures. */
  readonly remarks?: readonly string[];
  /** Lost exclusivity, order or items: in Baton, a failure of the run. */
  readonly broken?: boolean;
}

export interface Workload {
  readonly name: string;
  readonly group: WorkloadGroup;
  readonly title: string;
  /** One item per key at a time, in order. Where it is not asked for, Baton gives each item its own key. */
  readonly exclusive: boolean;
  /** Takes minutes and repeats inside: measured in the first round only, after everything else of it. */
  readonly long?: boolean;
  /** Says little that others do not say too: left out by `--quick` unless it is named. */
  readonly extra?: boolean;
  metrics(sizes: Sizes): readonly Metric[];
  measure(scene: Scene, sizes: Sizes): Promise<Measured>;
}
