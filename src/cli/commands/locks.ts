import type { Command } from "commander";
import type { LockReport } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { globalsOf } from "../flags.ts";
import { printJson, printLine, printWarning } from "../output.ts";
import { printable, summary } from "../printable.ts";
import { openExistingStore } from "../store.ts";
import { table } from "../table.ts";
import { ago, ahead } from "../times.ts";

/** Named in a warning, for each lock. */
const MOST_FOREIGN = 3;

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
  for (const { name, foreign } of reports) {
    if (foreign === undefined) continue;
    const found = foreign.slice(0, MOST_FOREIGN).join(", ");
    const more = foreign.length > MOST_FOREIGN ? `, and ${foreign.length - MOST_FOREIGN} more` : "";
    printWarning(
      `where lock ${name} is kept, the store has what Baton did not write: ${found}${more}. ` +
        "Those who lock by it, such as consul lock with its key .lock, are not kept out by Baton's locks.",
    );
  }
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
function whyKept(report: LockReport): string | undefined {
  const { retiredUntil, delayedUntil, foreign, damage, holders, waiting, lastData } = report;
  if (damage !== undefined) return "(damaged: see baton doctor)";
  const isNothingElse = holders.length === 0 && (waiting ?? 0) === 0 && lastData === undefined;
  if (foreign !== undefined && isNothingElse) return "(not Baton's)";
  if (retiredUntil !== undefined) return `(retired, free ${ahead(retiredUntil)})`;
  return delayedUntil === undefined ? undefined : `(lost, free ${ahead(delayedUntil)})`;
}
