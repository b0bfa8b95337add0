import { type Command, InvalidArgumentError, Option } from "commander";
import { formatDuration, InvalidInput, parseDuration } from "../index.ts";

/** What a variable may say to mean that a switch is off, as if it were not set. */
const OFF: readonly string[] = ["", "0", "false", "no", "off"];

/** An option that can also be set by an environment variable. */
export class Flag extends Option {
  readonly variable: string | undefined;
  /** Offered by completion; not a limit, unlike choices. */
  readonly suggestions: readonly string[];
  /** Its value is a length of time, in milliseconds. */
  isTime = false;

  constructor(
    flags: string,
    description: string,
    more: { readonly variable?: string | false; readonly suggestions?: readonly string[] } = {},
  ) {
    super(flags, description);
    this.suggestions = more.suggestions ?? [];
    const { variable = `BATON_${this.name().replaceAll("-", "_").toUpperCase()}` } = more;
    this.variable = variable === false ? undefined : variable;
    // Commander takes a variable that is set to nothing for a value, and any value for a yes.
    const value = this.variable === undefined ? undefined : process.env[this.variable];
    const off = this.isBoolean() ? OFF : [""];
    if (this.variable !== undefined && value !== undefined && !off.includes(value.toLowerCase()))
      this.env(this.variable);
  }
}

/** A count, 1 or more. */
export function countFlag(flags: string, description: string): Flag {
  const flag = new Flag(flags, description);
  flag.argParser((text: string): number => {
    const count = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(count) && count >= 1) return count;
    throw new InvalidArgumentError("Expected a whole number, 1 or more.");
  });
  return flag;
}

/** A length of time, in milliseconds. Digits without a unit are milliseconds, as in the library. */
export function durationFlag(flags: string, description: string): Flag {
  const flag = new Flag(flags, description);
  flag.isTime = true;
  flag.argParser((text: string): number => {
    try {
      return parseDuration(/^\d+$/.test(text) ? Number(text) : text, flag.name());
    } catch (error) {
      if (error instanceof InvalidInput) throw new InvalidArgumentError(`Expected ${error.rule}.`);
      throw error;
    }
  });
  return flag;
}

/** Accepted before and after the command, on every command. */
export interface GlobalFlags {
  readonly store?: string;
  readonly json?: true;
  readonly waitForStore?: number;
}

export function globalFlags(): readonly Flag[] {
  return [
    new Flag(
      "--store <url>",
      "the store: sqlite:FILE, nats://HOST, postgres://HOST/DATABASE, redis://HOST, or for locks consul://HOST (default: sqlite: in your data folder)",
      {
        variable: "BATON_URL",
      },
    ),
    new Flag("--json", "print JSON, one value per line"),
    durationFlag(
      "--wait-for-store <time>",
      "how long to wait for a store that cannot be reached (default: not at all)",
    ),
  ];
}

/** The same complaint by the name that the user knows: `--lease`, where the library says `lease`. */
export function inFlags(error: unknown, command: Command | undefined): unknown {
  if (!(error instanceof InvalidInput) || command === undefined) return error;
  const field = error.field.split(".").at(-1);
  const flag = command.options.find((option) => option.attributeName() === field && !option.negate);
  if (flag?.long === undefined) return error;
  const isTime = flag instanceof Flag && flag.isTime && typeof error.value === "number";
  return new InvalidInput(flag.long, isTime ? formatDuration(error.value) : error.value, error.rule);
}

export function globalsOf(command: Command): GlobalFlags {
  return command.optsWithGlobals<GlobalFlags>();
}

/** What help says about an option beside its description. */
export function describeFlag(option: Option): string {
  const more: string[] = [];
  if (option.argChoices !== undefined) more.push(option.argChoices.join(", "));
  if (option instanceof Flag && option.variable !== undefined) more.push(`$${option.variable}`);
  return more.length === 0 ? option.description : `${option.description} (${more.join("; ")})`;
}
