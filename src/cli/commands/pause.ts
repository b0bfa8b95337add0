import type { Command } from "commander";
import { endHelp, newCommand } from "../command.ts";
import { globalsOf } from "../flags.ts";
import { openKnownQueue } from "../known-queue.ts";
import { printJson, printLine } from "../output.ts";
import { printable } from "../printable.ts";

export function pauseCommand(): Command {
  const command = newCommand("pause", "Stop handing out a queue, or one key of it.")
    .argument("<queue>", "the queue")
    .argument("[key]", "only this key")
    .action((queue: string, key: string | undefined, _flags: object, self: Command) => pause(queue, key, true, self));
  return endHelp(command, {
    notes: ["What runs is left alone, and items are still accepted."],
    examples: ["baton pause cars", "baton pause cars car1"],
  });
}

export function resumeCommand(): Command {
  const command = newCommand("resume", "Hand out a paused queue, or key, again.")
    .argument("<queue>", "the queue")
    .argument("[key]", "only this key")
    .action((queue: string, key: string | undefined, _flags: object, self: Command) => pause(queue, key, false, self));
  return endHelp(command, {
    notes: ["A key that was paused by itself stays paused when its queue is resumed."],
    examples: ["baton resume cars", "baton resume cars car1"],
  });
}

async function pause(name: string, key: string | undefined, paused: boolean, command: Command): Promise<void> {
  const globals = globalsOf(command);
  await using known = await openKnownQueue(name, globals);
  await (paused ? known.queue.pause(key) : known.queue.resume(key));
  if (globals.json === true) printJson({ queue: name, ...(key === undefined ? {} : { key }), paused });
  else printLine(`${paused ? "paused" : "resumed"} ${name}${key === undefined ? "" : ` ${printable(key)}`}`);
}
