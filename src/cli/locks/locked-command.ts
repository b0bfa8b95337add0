import { constants } from "node:os";
import { BatonError, type HeldLock } from "../../index.ts";
import type { Guard } from "../guard/guard.ts";
import type { CommandEnd } from "../guard/messages.ts";
import type { Program } from "../work/runnable.ts";

/** Between SIGTERM and SIGKILL. The guard makes it shorter when the lock ends sooner: exclusivity goes first. */
const KILL_AFTER_MS = 5_000;
/** What shells make of a command that a signal ended. */
const KILLED = 128;

/** Runs a command for as long as the lock is held. */
export async function runUnderLock(guard: Guard, program: Program, lock: HeldLock): Promise<CommandEnd> {
  await guard.ready();
  lock.check();
  const environment = { BATON_LOCK: lock.name, BATON_FENCE: String(lock.fence) };
  return await guard.run({ ...program, environment }, lock, KILL_AFTER_MS);
}

/** The exit code that a shell would show for the command. */
export function exitCodeOfCommand(end: CommandEnd): number {
  switch (end.type) {
    case "exited":
      return end.code;
    case "killed":
      return exitCodeOfSignal(end.signal);
    case "not-started":
      throw new BatonError("INVALID_INPUT", `The command could not be started: ${end.message} (${end.code}).`);
  }
}

export function exitCodeOfSignal(signal: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return KILLED + (numbers[signal] ?? constants.signals.SIGKILL);
}
