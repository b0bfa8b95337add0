import type { CommandEnd } from "../guard/messages.ts";

/** EX_DATAERR of sysexits: the input is wrong, and stays wrong however often it is tried. */
export const BAD_DATA = 65;

/** The store keeps 2,000 bytes of a message; what is said first must leave room for the end of stderr. */
const LONGEST_TAIL = 1_800;

/** A command did not succeed. `fatal` sends the item to the dead letters, as any error with that property does. */
export class CommandFailure extends Error {
  readonly code: string;
  readonly fatal: boolean;

  constructor(code: string, message: string, fatal: boolean) {
    super(message);
    this.name = "CommandFailure";
    this.code = code;
    this.fatal = fatal;
    // It would show the inside of Baton, and the message a second time.
    delete this.stack;
  }
}

/** Undefined: it succeeded. */
export function failureOf(
  end: CommandEnd,
  command: string,
  fatalCodes: ReadonlySet<number>,
): CommandFailure | undefined {
  switch (end.type) {
    case "exited": {
      if (end.code === 0) return undefined;
      const fatal = end.code === BAD_DATA || fatalCodes.has(end.code);
      return new CommandFailure(
        `EXIT_${end.code}`,
        withTail(`The command exited with code ${end.code}.`, end.stderr),
        fatal,
      );
    }
    case "killed":
      return new CommandFailure("KILLED", withTail(`The command was killed by ${end.signal}.`, end.stderr), false);
    case "not-started":
      return new CommandFailure(
        end.code,
        `The command ${command} could not be started: ${reason(end.code, end.message)}`,
        false,
      );
  }
}

function reason(code: string, message: string): string {
  switch (code) {
    case "ENOENT":
      return "there is no such file on the PATH (ENOENT).";
    case "EACCES":
      return "it is not allowed to be executed (EACCES).";
    default:
      return `${message} (${code}).`;
  }
}

function withTail(message: string, stderr: string): string {
  return stderr === "" ? message : `${message} It said:\n${endOf(stderr)}`;
}

/** As many of its last characters as fit, which in UTF-8 may be fewer than bytes. */
function endOf(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= LONGEST_TAIL) return text;
  let from = bytes.length - LONGEST_TAIL;
  // In the middle of a character: on to the next.
  while (((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return bytes.toString("utf8", from);
}
