/**
 * The guard: a process beside `baton work` that starts its commands and ends them when the worker cannot.
 *
 * A worker that is killed (SIGKILL, out of memory) or halted (SIGSTOP, Ctrl-Z) can neither renew a lease nor end its
 * commands. They would go on while the lease runs out and another worker takes the key: two commands on one key. So
 * the commands are children of this process, and it knows for each of them until when the lease lasts without the
 * worker's doing:
 *
 * - The channel closes: the worker is gone. Its commands are ended at once.
 * - A deadline passes that the worker did not move: the worker is halted, or lost the lease. The command is ended,
 *   and is dead before the lease ends in the store.
 *
 * The guard starts the commands itself, rather than being told of them, so that there is no moment at which a command
 * runs and only a dying worker knows of it. It lives in a session of its own: what is sent to the worker's group or
 * terminal does not reach it.
 */
import { GuardedCommand } from "./guarded-command.ts";
import { type FromGuard, isToGuard, type RunRequest } from "./messages.ts";
import { leftMs } from "./moments.ts";
import { openStandardError } from "./standard-error.ts";

/** What a command gets after SIGTERM, unless a quarter of the lease is shorter. */
const LONGEST_ORPHAN_MS = 5_000;
const orphanMs = Math.min(LONGEST_ORPHAN_MS, Number(process.argv[2] ?? Infinity) / 4);

/** For standard error to take what a command wrote last. */
const LAST_WORDS_MS = 1_000;

const commands = new Map<number, GuardedCommand>();
const stderr = openStandardError();
process.title = `baton guard of ${process.ppid}`;

process.on("message", (message: unknown) => {
  if (!isToGuard(message)) return;
  switch (message.type) {
    case "run":
      return start(message);
    case "renewed":
      for (const { run, deadlines } of message.runs) commands.get(run)?.renewed(deadlines);
      return;
    case "signal":
      for (const command of commands.values()) command.signal(message.signal);
      return;
    case "end":
      commands.get(message.run)?.end(message.killAfterMs);
  }
});

process.on("disconnect", () => {
  for (const command of commands.values()) command.end(orphanMs);
  leaveWhenDone();
});

// A service manager that stops everything at once must not leave the commands without their guard.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);

tell({ type: "ready" });

function start(request: RunRequest): void {
  const { run } = request;
  // This process was halted itself, or slow to start: the key may belong to somebody else by now.
  if (leftMs(request.deadlines.endAt) <= 0) {
    const message = "its lease was over before it could be started";
    return tell({ type: "ended", run, end: { type: "not-started", code: "LEASE_OVER", message } });
  }
  try {
    const command = new GuardedCommand(request, stderr, (end) => {
      commands.delete(run);
      tell({ type: "ended", run, end });
      leaveWhenDone();
    });
    commands.set(run, command);
    if (command.pid !== undefined) tell({ type: "started", run, pid: command.pid });
  } catch (error) {
    tell({ type: "ended", run, end: { type: "not-started", code: codeOf(error), message: messageOf(error) } });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "UNKNOWN";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function tell(message: FromGuard): void {
  // The worker may be gone: then there is nobody to tell.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

/** By itself, so that the last words of a command still get out; by force if somebody does not read them. */
function leaveWhenDone(): void {
  if (process.connected || commands.size > 0) return;
  setTimeout(() => process.exit(0), LAST_WORDS_MS).unref();
}
