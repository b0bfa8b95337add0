import { type Command, CommanderError } from "commander";
import { readFileSync } from "node:fs";
import { newCommand } from "./command.ts";
import { cancelCommand } from "./commands/cancel.ts";
import { completionCommand } from "./commands/completion.ts";
import { deadCommand } from "./commands/dead.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { electCommand } from "./commands/elect.ts";
import { itemCommand } from "./commands/item.ts";
import { keysCommand } from "./commands/keys.ts";
import { lockCommand } from "./commands/lock.ts";
import { locksCommand } from "./commands/locks.ts";
import { pauseCommand, resumeCommand } from "./commands/pause.ts";
import { queueCommand } from "./commands/queue.ts";
import { relayCommand } from "./commands/relay.ts";
import { statusCommand } from "./commands/status.ts";
import { submitCommand } from "./commands/submit.ts";
import { workCommand } from "./commands/work.ts";
import { globalFlags, inFlags } from "./flags.ts";
import { exitCodeOf, leaveQuietlyWhenNobodyReads, printError } from "./output.ts";

/** Runs one command line. Resolves with the exit code; whatever there was to say is said. */
export async function run(words: readonly string[]): Promise<number> {
  leaveQuietlyWhenNobodyReads();
  let command: Command | undefined;
  try {
    const root = program().hook("preAction", (_root, chosen) => {
      command = chosen;
    });
    await root.parseAsync([...words], { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its own: a usage error, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode;
    printError(inFlags(error, command));
    return exitCodeOf(error);
  }
}

export function program(): Command {
  const root = newCommand("baton", "An exclusive, prioritised work queue, and locks: one worker per key, everywhere.")
    .usage("[options] <command>")
    .version(version(), "--version", "print the version")
    .showHelpAfterError("See: baton --help")
    .addHelpText("after", OVERVIEW);
  for (const flag of globalFlags()) root.addOption(flag);
  const commands = [
    submitCommand(),
    workCommand(),
    statusCommand(),
    keysCommand(),
    itemCommand(),
    deadCommand(),
    pauseCommand(),
    resumeCommand(),
    cancelCommand(),
    queueCommand(),
    lockCommand(),
    electCommand(),
    locksCommand(),
    relayCommand(),
    doctorCommand(),
  ];
  for (const command of commands) root.addCommand(command);
  root.addCommand(completionCommand(root));
  return root;
}

const OVERVIEW = `
Examples:
  baton submit cars car1 paint --level high
  baton work cars --concurrency 4 -- ./paint.sh
  baton status cars --watch
  baton lock nightly --no-wait -- ./report.sh

baton <command> --help explains a command and its exit codes.`;

function version(): string {
  // Two folders up, in the source as in the package.
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  if (typeof manifest !== "object" || manifest === null || !("version" in manifest)) return "unknown";
  return String(manifest.version);
}
