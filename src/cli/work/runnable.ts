import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Command } from "commander";
import { InvalidInput } from "../../index.ts";

/** What a command line says to run. */
export interface Program {
  readonly command: string;
  readonly commandArguments: readonly string[];
}

/** The words behind `--`. A command line without them, or with a program that is not there, is refused. */
export function programOf(words: readonly string[], command: Command, needs: string): Program {
  const [program, ...commandArguments] = words;
  if (program === undefined) command.error(`error: ${needs}`);
  assertRunnable(program);
  return { command: program, commandArguments };
}

/** A mistyped command must be an error now, not a dead letter for every item of the queue. */
function assertRunnable(program: string): void {
  // Windows finds programs by more rules than these; there the first item tells.
  if (process.platform === "win32") return;
  const places = program.includes("/") ? [program] : searchPath().map((folder) => join(folder, program));
  if (places.some(isRunnable)) return;
  throw new InvalidInput(
    "command",
    program,
    program.includes("/")
      ? "a file that exists and may be run"
      : "a program that is found in $PATH (a script of yours: ./script)",
  );
}

function searchPath(): readonly string[] {
  return (process.env["PATH"] ?? "").split(delimiter).map((folder) => (folder === "" ? "." : folder));
}

function isRunnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
