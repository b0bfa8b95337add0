import type { Command } from "commander";
import { type AttemptReport, BatonError, type Failure, type ItemReport } from "../../index.ts";
import { endHelp, newCommand } from "../command.ts";
import { globalsOf } from "../flags.ts";
import { openKnownQueue } from "../known-queue.ts";
import { printJson, printLine } from "../output.ts";
import { payloadFields, payloadText } from "../payload.ts";
import { printable, summary } from "../printable.ts";
import { pairs, table } from "../table.ts";
import { ago, ahead, dateTime } from "../times.ts";

export function itemCommand(): Command {
  const command = newCommand("item", "Show where an item is, or how it ended.")
    .argument("<queue>", "the queue")
    .argument("<id>", "the item's id, from its receipt")
    .action(item);
  return endHelp(command, {
    notes: ["How an item ended is remembered for a day if it was submitted with an id."],
    examples: ["baton item cars order-17", "baton item cars @12 --json"],
    exitCodes: ["0 found", "1 not found, or anything else"],
  });
}

async function item(name: string, id: string, _flags: object, command: Command): Promise<void> {
  const globals = globalsOf(command);
  await using known = await openKnownQueue(name, globals);
  const report = await known.queue.item(id);
  if (report === undefined) throw notFound(name, id);
  if (globals.json === true) printJson(fieldsOf(report));
  else for (const line of [...pairs(entriesOf(report)), ...attemptLines(report)]) printLine(line);
}

export function notFound(queue: string, id: string): BatonError {
  return new BatonError(
    "NOT_FOUND",
    `There is no item ${id} in queue ${queue}. It was never submitted, or it ended and how is not remembered ` +
      "(only items submitted with an id are, for a day).",
  );
}

function fieldsOf(report: ItemReport): object {
  const { outcome } = report;
  if (outcome?.result === undefined) return report;
  return { ...report, outcome: { ...outcome, result: payloadFields(outcome.result) } };
}

function entriesOf(report: ItemReport): (readonly [string, string])[] {
  const { running, outcome } = report;
  const entries: (readonly [string, string])[] = [
    ["id", printable(report.id)],
    ["key", printable(report.key)],
    ["level", report.level],
    ["state", report.state],
    ["attempt", String(report.attempt)],
    ["submitted", `${dateTime(report.submittedAt)} (${ago(report.submittedAt)})`],
  ];
  if (report.dueAt !== undefined) entries.push(["due", `${dateTime(report.dueAt)} (${ahead(report.dueAt)})`]);
  if (report.failure !== undefined) entries.push(["failure", failureText(report.failure)]);
  if (running !== undefined) {
    entries.push(
      ["worker", printable(running.worker)],
      ["running", `since ${ago(running.since)}, fence ${running.fence}`],
    );
    if (running.progress !== undefined) entries.push(["progress", `${Math.round(running.progress * 100)} %`]);
    entries.push(["lease ends", ahead(running.deadline)]);
  }
  if (outcome !== undefined) {
    entries.push(["ended", `${outcome.state}, ${dateTime(outcome.at)} (${ago(outcome.at)})`]);
    if (outcome.failure !== undefined) entries.push(["failure", failureText(outcome.failure)]);
    if (outcome.result !== undefined) entries.push(["result", printable(payloadText(outcome.result))]);
    if (outcome.resultMissing !== undefined) entries.push(["result", `not kept: ${printable(outcome.resultMissing)}`]);
  }
  return entries;
}

function failureText({ message, code }: Failure): string {
  const text = printable(message);
  return code === undefined || message.includes(code) ? text : `${text} (${printable(code)})`;
}

/** What came to nothing, the oldest first. */
function attemptLines({ attempts = [] }: ItemReport): string[] {
  return attempts.length === 0
    ? []
    : ["", ...table(["ATTEMPT", "ENDED", "WHEN", "WORKER", "REASON"], attempts.map(row))];
}

function row({ attempt, end, at, worker, failure }: AttemptReport): (string | number)[] {
  return [attempt, end, ago(at), printable(worker), reasonOf(end, failure)];
}

function reasonOf(end: AttemptReport["end"], failure: Failure | undefined): string {
  switch (end) {
    case "failed":
      return failure === undefined ? "not known: an older version of Baton" : summary(failure.message);
    case "lost":
      return "the lease ran out";
    case "released":
      return "given back, does not count";
  }
}
