/** npm run bench: measures and tells, or tells what earlier runs have measured. */
import { type Arguments, BadArgument, readArguments } from "./arguments.ts";
import { killChildren } from "./child/child.ts";
import { HELP } from "./help.ts";
import { readRecord } from "./record-file.ts";
import { agrees, writeAgreement } from "./report/agreement.ts";
import { writePage } from "./report/page.ts";
import { type Report, reportOn } from "./report/report.ts";
import { writeTable } from "./report/table.ts";
import { runSession } from "./session.ts";
import { removeFolders } from "./stores/place.ts";
import { signalServers } from "./stores/server-process.ts";

try {
  process.exitCode = await run(readArguments(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof BadArgument)) throw error;
  console.error(`${error.message} See npm run bench -- --help.`);
  process.exitCode = 2;
}

async function run(options: Arguments): Promise<number> {
  const { help, report, compare } = options;
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (report.length > 0) {
    tell(reportOn(report.map(readRecord)), options);
    return 0;
  }
  const [first, second] = compare.map((file) => reportOn([readRecord(file)]));
  if (first !== undefined && second !== undefined) {
    process.stdout.write(writeAgreement(first, second));
    return agrees(first, second) ? 0 : 1;
  }
  leaveCleanly();
  const { record, broken } = await runSession(options);
  if (record.samples.length === 0) {
    console.error("Nothing could be measured.");
    return 1;
  }
  tell(reportOn([record]), options);
  for (const { title } of broken) console.error(`${title} broke a promise: see the remarks.`);
  return broken.length === 0 ? 0 : 1;
}

function tell(report: Report, { markdown }: Arguments): void {
  process.stdout.write(writeTable(report));
  if (markdown !== undefined) writePage(report, markdown);
}

/** Ctrl-C, an error that nobody caught: what this run started ends with it. */
function leaveCleanly(): void {
  process.on("exit", () => {
    killChildren();
    signalServers();
    removeFolders();
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(130));
}
