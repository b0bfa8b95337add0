import { BadArgument } from "./arguments.ts";
import { WORKLOAD_GROUPS, type WorkloadGroup } from "./subject.ts";
import type { Workload } from "./workload.ts";
import { backlogWorkloads } from "./workloads/backlog.ts";
import { hotKeyWorkload } from "./workloads/hot-key.ts";
import { latencyWorkloads } from "./workloads/latency.ts";
import { memoryWorkload } from "./workloads/memory.ts";
import { submitWorkloads } from "./workloads/submit.ts";
import { drainWorkloads, keyedWorkloads } from "./workloads/working-off.ts";

const ALL: readonly Workload[] = [
  ...submitWorkloads,
  ...drainWorkloads,
  ...latencyWorkloads,
  ...keyedWorkloads,
  ...backlogWorkloads,
  hotKeyWorkload,
  memoryWorkload,
];

/** By group, such as `drain`, or by name, such as `drain-16`. */
export function selectWorkloads(names: readonly string[]): readonly Workload[] {
  if (names.length === 0) return ALL;
  for (const name of names) {
    if (!isGroup(name) && !ALL.some((workload) => workload.name === name))
      throw new BadArgument(`There is no workload ${name}. There are: ${WORKLOAD_GROUPS.join(", ")}.`);
  }
  return ALL.filter((workload) => names.includes(workload.group) || names.includes(workload.name));
}

function isGroup(name: string): name is WorkloadGroup {
  return (WORKLOAD_GROUPS as readonly string[]).includes(name);
}
