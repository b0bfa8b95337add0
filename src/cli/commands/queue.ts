import type { Command } from "commander";
import { endHelp, newCommand } from "../command.ts";
import { Flag, globalsOf } from "../flags.ts";
import { othersIn } from "../known-queue.ts";
import { printJson, printLine } from "../output.ts";
import { noStoreYet, openExistingStore } from "../store.ts";
import { BatonError } from "../../index.ts";

export function queueCommand(): Command {
  const command = newCommand("queue", "Delete a queue.").usage("[options] <command>");
  command.addCommand(deleteCommand());
  return endHelp(command, {
    examples: ["baton queue delete ordres", "baton queue delete cars --force"],
    exitCodes: DELETE_CODES,
  });
}

const DELETE_CODES = [
  "0 deleted",
  "1 not done, or there is no such queue; standard error says why",
  "3 refused: it is not empty",
];

function deleteCommand(): Command {
  const command = newCommand("delete", "Delete a queue that is empty, with all that is kept of it.")
    .argument("<queue>", "the queue")
    .addOption(
      new Flag("--force", "also when it is not empty: what waits, runs or is a dead letter in it is lost", {
        variable: false,
      }),
    )
    .action((queue: string, { force }: { readonly force?: true }, self: Command) =>
      deleteQueue(queue, force === true, self),
    );
  return endHelp(command, {
    within: "queue",
    notes: [
      "Its levels, its pauses and what is remembered of its ended items go with it: an id that was submitted before is new again.",
      "Whoever submits to it later makes it anew. A worker that waits for work in it goes on waiting, and does not make it anew.",
    ],
    examples: ["baton queue delete ordres", "baton queue delete cars --force"],
    exitCodes: DELETE_CODES,
  });
}

async function deleteQueue(name: string, force: boolean, command: Command): Promise<void> {
  const globals = globalsOf(command);
  const opened = await openExistingStore(globals);
  if (opened === undefined) throw noStoreYet(globals);
  await using baton = opened;
  if (!(await baton.queue(name).delete({ force })))
    throw new BatonError(
      "NOT_FOUND",
      `There is no queue "${name}" in this store. ${(await othersIn(baton, name)) ?? "It has none."}`,
    );
  if (globals.json === true) printJson({ queue: name, deleted: true });
  else printLine(`deleted ${name}`);
}
