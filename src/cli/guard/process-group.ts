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

/** Whether anything of the group is left that could be signalled. */
export function groupLives(pid: number): boolean {
  if (!HAS_GROUPS) return false;
  try {
    return process.kill(-pid, 0);
  } catch {
    return false;
  }
}
