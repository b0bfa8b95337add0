/** What Linux tells about processes and nobody else does. Elsewhere there are none to see. */
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessFacts {
  readonly pid: string;
  /** `Z` is a zombie. */
  readonly state: string;
  readonly group: number;
}

export function linuxProcesses(): readonly ProcessFacts[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((pid) => {
    const status = /^\d+$/.test(pid) ? readOrNothing(`/proc/${pid}/stat`) : undefined;
    if (status === undefined) return [];
    // After the program's name, which may contain anything: state, parent, group.
    const [state = "", , group] = status.slice(status.lastIndexOf(")") + 2).split(" ", 3);
    return [{ pid, state, group: Number(group) }];
  });
}

/** The groups that have a process with this setting in its environment. */
export function groupsWithVariable(name: string, value: string): ReadonlySet<number> {
  const setting = `${name}=${value}`;
  const found = linuxProcesses().filter(({ pid }) =>
    readOrNothing(`/proc/${pid}/environ`)?.split("\0").includes(setting),
  );
  return new Set(found.map(({ group }) => group));
}

/** A process may end while we look, or belong to somebody else. */
function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return undefined;
  }
}
