import type { Command } from "commander";
import type { LockReport } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { globalsOf } from "../flags.ts";
import { printJson, printLine } from "../output.ts";
import { printable, summary } from "../printable.ts";
import { openExistingStore } from "../store.ts";
import { table } from "../table.ts";
import { ago, ahead } from "../times.ts";

export function locksCommand(): Command {
  const command = newCommand("locks", "List the locks and elections of the store: who holds what, since when.").action(
    locks,
  );
  return endHelp(command, {
    notes: [
      "A lock that nobody holds, waits for or is kept from is not listed, unless its last holder vanished and left data.",
    ],
    examples: ["baton locks", "baton locks --json | jq '.[] | select(.waiting > 0)'"],
  });
}

async function locks(_flags: object, command: Command): Promise<void> {
  const globals = globalsOf(command);
  const baton = await openExistingStore(globals);
  const reports = baton === undefined ? [] : await listAndClose(baton);
  if (globals.json === true) return printJson(reports);
  if (reports.length === 0) return printLine("No locks.");
  const head = ["LOCK", "HOLDER", "SINCE", "FENCE", "SLOTS", "WAITING", "DATA"];
  for (const line of table(head, reports.flatMap(rows))) printLine(line);
}

async function listAndClose(
  baton: AsyncDisposable & { locks(): Promise<readonly LockReport[]> },
): Promise<readonly LockReport[]> {
  await using open = baton;
  return await open.locks();
}

/** One per holder; one for a lock that nobody holds. */
function rows(report: LockReport): (string | number)[][] {
  const name = printable(report.name);
  const waiting = report.waiting ?? "-";
  const kept = whyKept(report);
  const free = [name, kept ?? "-", "-", "-", report.slots, waiting, summary(report.lastData ?? "-")];
  const held = report.holders.map(({ owner, since, fence, data }) => [
    name,
    printable(owner),
    ago(since),
    fence,
    report.slots,
    waiting,
    summary(data ?? "-"),
  ]);
  return held.length === 0 || kept !== undefined ? [...held, free] : held;
}

/** Why nobody gets a slot that is free. */
function whyKept({ retiredUntil, delayedUntil }: LockReport): string | undefined {
  if (retiredUntil !== undefined) return `(retired, free ${ahead(retiredUntil)})`;
  return delayedUntil === undefined ? undefined : `(lost, free ${ahead(delayedUntil)})`;
}
