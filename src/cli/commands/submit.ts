import type { Command } from "commander";
import type { Mode, Receipt } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { durationFlag, Flag, globalsOf } from "../flags.ts";
import { isRefusal, printJson, printLine } from "../output.ts";
import { readPayload } from "../payload.ts";
import { printable } from "../printable.ts";
import { openStore } from "../store.ts";

interface SubmitFlags {
  readonly level?: string;
  readonly id?: string;
  readonly delay?: number;
  readonly mode?: Mode;
  readonly type?: string;
}

export function submitCommand(): Command {
  const command = newCommand("submit", "Submit an item of work for a key. Prints the receipt.")
    .argument("<queue>", "the queue; made by its first use")
    .argument("<key>", "what the work is about: at most one worker at a time works on a key")
    .argument("[payload]", "text for the worker; - reads standard input")
    // No variables for these two: baton work sets $BATON_LEVEL and $BATON_ID to those of the item that its command works
    // on, and a command that submits further work must not do so under the same id.
    .addOption(
      new Flag("--level <level>", "how urgent: high, normal (default) or low", {
        variable: false,
        suggestions: ["high", "normal", "low"],
      }),
    )
    .addOption(
      new Flag("--id <id>", "accept it once, however often it is submitted; its end is remembered", {
        variable: false,
      }),
    )
    .addOption(durationFlag("--delay <time>", "let it arrive later: 10s, 5m, 1h"))
    .addOption(
      new Flag(
        "--mode <mode>",
        "if the key has an item: wait in line (fifo, default), replace what waits, or be refused",
      ).choices(["fifo", "latest", "strict"]),
    )
    .addOption(
      new Flag("--type <type>", "the payload's content type; application/json is checked (default: text/plain)"),
    )
    .action(submit);
  return endHelp(command, {
    examples: [
      "baton submit cars car1 paint",
      "baton submit cars car1 --id order-17 --level high --delay 10s 'paint it red'",
      `echo '{"colour":"red"}' | baton submit cars car1 - --type application/json`,
    ],
    exitCodes: [
      "0 accepted (also when the id was known: a duplicate)",
      "3 refused: the key is busy or full, or the queue is full",
      "1 anything else",
    ],
  });
}

async function submit(
  name: string,
  key: string,
  text: string | undefined,
  flags: SubmitFlags,
  command: Command,
): Promise<void> {
  const globals = globalsOf(command);
  const { level, id, delay, mode } = flags;
  const { value, type } = await readPayload(text, flags.type);
  await using baton = await openStore(globals);
  try {
    const receipt = await baton.queue(name).submit(key, value, {
      type,
      ...(level === undefined ? {} : { level }),
      ...(id === undefined ? {} : { id }),
      ...(delay === undefined ? {} : { delay }),
      ...(mode === undefined ? {} : { mode }),
    });
    if (globals.json === true) printJson({ accepted: true, queue: name, ...fieldsOf(receipt) });
    else printLine(line(receipt));
  } catch (error) {
    if (globals.json === true && isRefusal(error) && error instanceof Error) {
      printJson({
        accepted: false,
        queue: name,
        key,
        code: "code" in error ? error.code : undefined,
        message: error.message,
      });
    }
    throw error;
  }
}

function fieldsOf({ id, key, level, at, duplicate, replaced }: Receipt): object {
  return { id, key, level, at, duplicate, replaced };
}

function line({ id, key, level, duplicate, replaced }: Receipt): string {
  const parts = ["accepted", printable(id), printable(key), level];
  if (duplicate) parts.push("duplicate");
  if (replaced.length > 0) parts.push("replaced", ...replaced.map(printable));
  return parts.join(" ");
}
