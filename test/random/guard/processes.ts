/** What Linux says of processes, read without the product's help. */
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** Whether anything of a group could still do something. A zombie cannot. */
export function groupIsAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch {
    return false;
  }
  return readdirSync("/proc").some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    const status = readOrNothing(`/proc/${pid}/stat`);
    const [state = "", , own] = status.slice(status.lastIndexOf(")") + 2).split(" ");
    return Number(own) === group && state !== "Z" && state !== "X";
  });
}

export function childrenOf(pid: number): readonly number[] {
  return readOrNothing(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
}

export function exists(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/\) [ZX] /.test(readOrNothing(`/proc/${pid}/stat`));
}

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
