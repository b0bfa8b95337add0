import type { Command, Option } from "commander";
import { Flag } from "../flags.ts";

/** What a completion script needs to know. Baton's commands are one level deep. */
export interface ProgramShape {
  readonly options: readonly OptionShape[];
  readonly commands: readonly CommandShape[];
}

export interface CommandShape {
  readonly name: string;
  readonly description: string;
  readonly options: readonly OptionShape[];
  /** In order. `queue` is completed with the queues of the store. */
  readonly operands: readonly OperandShape[];
}

export interface OperandShape {
  readonly name: string;
  readonly values: readonly string[];
}

export interface OptionShape {
  /** With its dashes: `--level`. */
  readonly flag: string;
  readonly description: string;
  readonly takesValue: boolean;
  readonly values: readonly string[];
}

export function shapeOf(root: Command): ProgramShape {
  return {
    options: optionsOf(root),
    commands: root.commands.map((command) => ({
      name: command.name(),
      description: command.description(),
      options: optionsOf(command),
      operands: command.registeredArguments.map((argument) => ({
        name: argument.name(),
        values: argument.argChoices ?? [],
      })),
    })),
  };
}

/** Prints the names of the queues, one per line. They are plain words by rule, so that no parser is needed. */
export const QUEUE_NAMES = `baton status --json 2>/dev/null | grep -o '"queue":"[A-Za-z0-9_-]*"' | cut -d '"' -f 4`;

function optionsOf(command: Command): readonly OptionShape[] {
  return command.createHelp().visibleOptions(command).flatMap(optionShape);
}

function optionShape(option: Option): OptionShape[] {
  if (option.long === undefined || option.long === null) return [];
  return [
    {
      flag: option.long,
      description: option.description,
      takesValue: option.required || option.optional,
      values: option.argChoices ?? (option instanceof Flag ? option.suggestions : []),
    },
  ];
}
