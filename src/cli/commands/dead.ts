import { Argument, type Command } from "commander";
import { BatonError, type DeadReport, type Queue } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { countFlag, Flag, type GlobalFlags, globalsOf } from "../flags.ts";
import { openKnownQueue } from "../known-queue.ts";
import { printJson, printLine } from "../output.ts";
import { payloadFields } from "../payload.ts";
import { printable, summary } from "../printable.ts";
import { table } from "../table.ts";
import { ago } from "../times.ts";

type Action = "list" | "retry" | "drop";

interface DeadFlags {
  readonly all?: true;
  readonly limit?: number;
  readonly after?: string;
}

const DEFAULT_LIMIT = 100;

export function deadCommand(): Command {
  const command = newCommand("dead", "List the dead letters of a queue, submit them anew, or drop them.")
    .argument("<queue>", "the queue")
    .addArgument(new Argument("<action>", "what to do").choices(["list", "retry", "drop"]))
    .argument("[ids...]", "retry, drop: these")
    // No variable: to drop everything takes somebody who says so.
    .addOption(new Flag("--all", "retry, drop: all of them", { variable: false }))
    .addOption(countFlag("--limit <n>", `list: at most so many (default ${DEFAULT_LIMIT})`))
    .addOption(new Flag("--after <id>", "list: go on behind this one, the last one of the page before"))
    .action(dead);
  return endHelp(command, {
    notes: ["A retried letter goes behind what waits, with its attempts forgotten."],
    examples: ["baton dead cars list", "baton dead cars retry order-17 @12", "baton dead cars drop --all"],
    exitCodes: ["0 done", "1 none of the ids is a dead letter, or anything else"],
  });
}

async function dead(
  name: string,
  action: Action,
  ids: readonly string[],
  flags: DeadFlags,
  command: Command,
): Promise<void> {
  if (action === "list" && (ids.length > 0 || flags.all === true)) {
    command.error("error: list takes no ids and no --all; baton item shows a single item");
  }
  if (action !== "list" && (ids.length === 0) !== (flags.all === true)) {
    command.error(`error: ${action} needs the ids of dead letters, or --all for all of them, and not both`);
  }
  const globals = globalsOf(command);
  await using known = await openKnownQueue(name, globals);
  if (action === "list") await list(known.queue, flags, globals);
  else await revive(known.queue, action, flags.all === true ? undefined : ids, globals);
}

async function list(
  queue: Queue<unknown>,
  { limit = DEFAULT_LIMIT, after }: DeadFlags,
  globals: GlobalFlags,
): Promise<void> {
  const letters = await queue.dead(after === undefined ? { limit } : { limit, after });
  if (globals.json === true) return printJson(letters.map((one) => ({ ...one, payload: payloadFields(one.payload) })));
  if (letters.length === 0) return printLine(after === undefined ? "No dead letters." : "No more dead letters.");
  for (const line of table(["ID", "KEY", "LEVEL", "ATTEMPT", "DIED", "REASON"], letters.map(row))) printLine(line);
  const last = letters.at(-1);
  if (letters.length === limit && last !== undefined)
    process.stderr.write(`There may be more: --after ${printable(last.id)}\n`);
}

function row({ id, key, level, attempt, at, failure }: DeadReport): (string | number)[] {
  return [printable(id), printable(key), level, attempt, ago(at), summary(failure.message)];
}

async function revive(
  queue: Queue<unknown>,
  action: "retry" | "drop",
  ids: readonly string[] | undefined,
  globals: GlobalFlags,
): Promise<void> {
  const count = await (action === "retry" ? queue.retryDead(ids) : queue.dropDead(ids));
  const what = action === "retry" ? "retried" : "dropped";
  if (globals.json === true) printJson({ queue: queue.name, [what]: count });
  else if (count > 0 || ids === undefined) printLine(`${what} ${count} dead letter${count === 1 ? "" : "s"}`);
  if (count === 0 && ids !== undefined) {
    throw new BatonError(
      "NOT_FOUND",
      `None of these is a dead letter of queue ${queue.name}. See: baton dead ${queue.name} list`,
    );
  }
}
