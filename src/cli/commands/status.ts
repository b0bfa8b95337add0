import type { Command } from "commander";
import type { Baton, BatonEvent } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { Flag, type GlobalFlags, globalsOf } from "../flags.ts";
import { findQueue } from "../known-queue.ts";
import { printEvent, printJson, printLine } from "../output.ts";
import { findRunning } from "../status/running.ts";
import { queueLines, type QueueStatus, storeLines } from "../status/lines.ts";
import { type View, watch } from "../status/watch.ts";
import { displayUrl, noStoreYet, openExistingStore, storeUrl } from "../store.ts";

export function statusCommand(): Command {
  const command = newCommand("status", "Show the queues of the store, or one queue and what runs in it.")
    .argument("[queue]", "only this one, with what runs")
    .addOption(
      new Flag("--watch", "keep showing, until q or Ctrl-C; a line per change if standard output is no terminal"),
    )
    .action(status);
  return endHelp(command, {
    examples: ["baton status", "baton status cars --watch", `baton status --json | jq '.[] | select(.dead > 0)'`],
  });
}

async function status(name: string | undefined, flags: { readonly watch?: true }, command: Command): Promise<void> {
  const globals = globalsOf(command);
  let isWatching = false;
  // A watch tells of outages itself, and may have the screen.
  const tell = (event: BatonEvent): void => (isWatching ? undefined : printEvent(event));
  const baton = await openExistingStore(globals, tell);
  if (baton === undefined) return tellNoStore(name, globals);
  try {
    const look = (): Promise<View> => (name === undefined ? lookAtStore(baton) : lookAtQueue(baton, name));
    isWatching = flags.watch === true;
    if (isWatching) await watch(look, globals.json === true);
    else show(await look(), globals.json === true);
  } finally {
    await baton.close();
  }
}

function show(view: View, json: boolean): void {
  if (json) printJson(view.json);
  else for (const line of view.lines()) printLine(line);
}

async function lookAtStore(baton: Baton): Promise<View> {
  const reports = await baton.queues();
  return { json: reports, lines: () => storeLines(reports) };
}

async function lookAtQueue(baton: Baton, name: string): Promise<View> {
  const { queue, report } = await findQueue(baton, name);
  const seen: QueueStatus = { ...report, runs: await findRunning(queue) };
  return { json: seen, lines: () => queueLines(seen) };
}

/** A store without a file is an empty one, unless a queue was asked for. */
function tellNoStore(name: string | undefined, globals: GlobalFlags): void {
  if (name !== undefined) throw noStoreYet(globals);
  if (globals.json === true) printJson([]);
  else
    printLine(`No queues: there is no store yet at ${displayUrl(storeUrl(globals))}. The first baton submit makes it.`);
}
