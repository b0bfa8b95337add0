import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 2;

/**
 * Stops a process where it is, and resolves when it stands still: the signal alone returns while the process still runs, on a
 * busy machine long enough for an answer. Where the system has no /proc the signal has to do.
 */
export async function halt(pid: number): Promise<void> {
  try {
    process.kill(pid, "SIGSTOP");
  } catch {
    return; // It has ended by itself.
  }
  while (threadsOf(pid).some((state) => !STILL.has(state))) await sleep(LOOK_EVERY_MS);
}

/** Stopped, stopped by a debugger, ended. */
const STILL: ReadonlySet<string> = new Set(["T", "t", "Z", "X"]);

/** The state of each, by its letter; none where the process has ended. */
function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => stateOf(`/proc/${pid}/task/${thread}/stat`));
  } catch {
    return [];
  }
}

function stateOf(file: string): string {
  try {
    const stat = readFileSync(file, "utf8");
    // After the name, which is in parentheses and may hold some itself.
    return stat.charAt(stat.lastIndexOf(")") + 2);
  } catch {
    return "X";
  }
}
