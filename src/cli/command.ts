import { Command } from "commander";
import { describeFlag } from "./flags.ts";
import { printableLines } from "./printable.ts";

/** What a command's help ends with. */
export interface Ending {
  /** The command that this one is a part of. */
  readonly within?: string;
  readonly notes?: readonly string[];
  readonly examples: readonly string[];
  /** Beside 0 and 1, which mean the same everywhere. */
  readonly exitCodes?: readonly string[];
}

/** Every command of Baton is made here, so that they behave and read alike. */
export function newCommand(name: string, summary: string): Command {
  return new Command(name)
    .description(summary)
    .configureHelp({
      showGlobalOptions: true,
      optionDescription: describeFlag,
      commandUsage: (command) => `${path(command)} ${command.usage()}`,
    })
    .configureOutput({
      outputError: (text, write) => write(printableLines(text.replace(/^error: /, "baton: "))),
    })
    .exitOverride();
}

export function endHelp(command: Command, { within, notes = [], examples, exitCodes = [] }: Ending): Command {
  const codes = exitCodes.length === 0 ? ["0 done", "1 not done; standard error says why"] : exitCodes;
  const sections = [
    ...(notes.length === 0 ? [] : ["", ...notes]),
    "",
    "Examples:",
    ...examples.map((line) => `  ${line}`),
    "",
    "Exit codes:",
    ...codes.map((line) => `  ${line}`),
  ];
  const words = ["baton", ...(within === undefined ? [] : [within]), command.name(), "--help"];
  return command.addHelpText("after", sections.join("\n")).showHelpAfterError(`See: ${words.join(" ")}`);
}

/** Without the aliases and the placeholder that commander adds. */
function path(command: Command): string {
  return command.parent === null ? command.name() : `${path(command.parent)} ${command.name()}`;
}
