import { setTimeout as wait } from "node:timers/promises";
import { linuxProcesses } from "./linux-processes.ts";

/** After SIGKILL there is nothing to wait for but the kernel, and what it cannot end must not block us as well. */
export const GONE_MS = 250;
/** How often a group that was told to end is looked at: the end of a grandchild is not reported to anybody. */
export const LOOK_MS = 20;

/**
 * A command is its whole process group: what a shell script started goes on working on the key when only the shell
 * is ended. Windows has no groups; there only the command itself is ended.
 */
export const HAS_GROUPS: boolean = process.platform !== "win32";

export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(HAS_GROUPS ? -pid : pid, signal);
  } catch {
    // Gone already, or not ours to signal (a command that became another user): nothing more can be done here.
  }
}

/** SIGKILL, and the moment that it takes: resolves when nothing is left, or nothing that could be waited for. */
export async function killGroup(pid: number): Promise<void> {
  signalGroup(pid, "SIGKILL");
  const giveUpAt = performance.now() + GONE_MS;
  while (groupLives(pid) && performance.now() < giveUpAt) await wait(LOOK_MS);
}

/** Whether anything of the group is left that could do something. */
export function groupLives(pid: number): boolean {
  if (!HAS_GROUPS) return false;
  try {
    process.kill(-pid, 0);
  } catch {
    return false;
  }
  return process.platform !== "linux" || hasLivingMember(pid);
}

/**
 * A signal also reaches zombies, and in a container the first process often reaps them late or never; an item must
 * not wait for that. Asked only when a command has ended and its group has not.
 */
function hasLivingMember(group: number): boolean {
  return linuxProcesses().some((one) => one.group === group && one.state !== "Z" && one.state !== "X");
}
