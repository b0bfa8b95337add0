import type { Command } from "commander";
import type { KeyReport } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { countFlag, Flag, globalsOf } from "../flags.ts";
import { openKnownQueue } from "../known-queue.ts";
import { printJson, printLine } from "../output.ts";
import { printable } from "../printable.ts";
import { table } from "../table.ts";

const DEFAULT_LIMIT = 100;

export function keysCommand(): Command {
  const command = newCommand("keys", "List the keys of a queue that have an item, a lease or a pause.")
    .argument("<queue>", "the queue")
    .addOption(countFlag("--limit <n>", `at most so many (default ${DEFAULT_LIMIT})`))
    .addOption(new Flag("--after <key>", "go on behind this key, the last one of the page before"))
    .action(keys);
  return endHelp(command, { examples: ["baton keys cars", "baton keys cars --limit 1000 --after car41 --json"] });
}

async function keys(
  name: string,
  flags: { readonly limit?: number; readonly after?: string },
  command: Command,
): Promise<void> {
  const globals = globalsOf(command);
  const { limit = DEFAULT_LIMIT, after } = flags;
  await using known = await openKnownQueue(name, globals);
  const reports = await known.queue.keys(after === undefined ? { limit } : { limit, after });
  if (globals.json === true) return printJson(reports);
  if (reports.length === 0) return printLine(after === undefined ? "No keys." : "No more keys.");
  for (const line of table(["KEY", "STATE", "WAITING", "DELAYED", "WORKER", "PAUSED"], reports.map(row)))
    printLine(line);
  for (const { key, damage } of reports)
    if (damage !== undefined) process.stderr.write(`${printable(key)} is damaged: ${printable(damage)}\n`);
  const last = reports.at(-1);
  if (reports.length === limit && last !== undefined) {
    process.stderr.write(`There may be more: --after ${printable(last.key)}\n`);
  }
}

function row({ key, state, waiting, delayed, running, paused, damage }: KeyReport): (string | number)[] {
  const worker = running === undefined ? "-" : printable(running.worker);
  return [printable(key), damage === undefined ? state : "damaged", waiting, delayed, worker, paused ? "paused" : "-"];
}
