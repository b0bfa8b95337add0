import type { Command } from "commander";
import { BatonError } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { globalsOf } from "../flags.ts";
import { openKnownQueue } from "../known-queue.ts";
import { printJson, printLine } from "../output.ts";
import { printable } from "../printable.ts";
import { notFound } from "./item.ts";

export function cancelCommand(): Command {
  const command = newCommand("cancel", "Take back an item.")
    .argument("<queue>", "the queue")
    .argument("<id>", "the item's id, from its receipt")
    .action(cancel);
  return endHelp(command, {
    notes: [
      "One that waits is cancelled now. One that runs: its worker is told within a third of its lease, and ends it.",
    ],
    examples: ["baton cancel cars order-17"],
    exitCodes: ["0 cancelled, or requested because it runs", "1 not found or ended already, or anything else"],
  });
}

async function cancel(name: string, id: string, _flags: object, command: Command): Promise<void> {
  const globals = globalsOf(command);
  await using known = await openKnownQueue(name, globals);
  const result = await known.queue.cancel(id);
  if (globals.json === true) printJson({ queue: name, id, result });
  switch (result) {
    case "cancelled":
      return globals.json === true ? undefined : printLine(`cancelled ${printable(id)}`);
    case "requested":
      return globals.json === true
        ? undefined
        : printLine(`requested ${printable(id)}: it runs; its worker will end it`);
    case "ended":
      throw new BatonError(
        "NOT_FOUND",
        `Item ${id} has ended already; nothing was changed. See: baton item ${name} ${id}`,
      );
    case "missing":
      throw notFound(name, id);
  }
}
