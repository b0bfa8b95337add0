import { BadArgument } from "./arguments.ts";
import type { Sizes } from "./sizes.ts";
import { WORKLOAD_GROUPS, type WorkloadGroup } from "./subject.ts";
import type { Workload } from "./workload.ts";
import { backlogWorkloads } from "./workloads/backlog.ts";
import { hotKeyWorkload } from "./workloads/hot-key.ts";
import { latencyWorkloads } from "./workloads/latency.ts";
import { memoryWorkload } from "./workloads/memory.ts";
import { submitWorkloads } from "./workloads/submit.ts";
import { drainWorkloads, keyedWorkloads } from "./workloads/working-off.ts";

function allWorkloads(sizes: Sizes): readonly Workload[] {
  return [
    ...submitWorkloads,
    ...drainWorkloads(sizes),
    ...latencyWorkloads,
    ...keyedWorkloads,
    hotKeyWorkload,
    memoryWorkload,
    ...backlogWorkloads,
  ];
}

/** By group, such as `drain`, or by name, such as `drain-16`; in a hurry, extra ones only if named. */
export function selectWorkloads(names: readonly string[], sizes: Sizes, hurry: boolean): readonly Workload[] {
  const all = allWorkloads(sizes);
  if (names.length === 0) return all.filter((workload) => !hurry || workload.extra !== true);
  for (const name of names) {
    if (!isGroup(name) && !all.some((workload) => workload.name === name))
      throw new BadArgument(
        `There is no workload ${name}. There are: ${WORKLOAD_GROUPS.join(", ")}; of these: ${all.map((one) => one.name).join(", ")}.`,
      );
  }
  return all.filter((workload) => names.includes(workload.group) || names.includes(workload.name));
}

function isGroup(name: string): name is WorkloadGroup {
  return (WORKLOAD_GROUPS as readonly string[]).includes(name);
}
