/** npm run bench: installs the peers, gets the servers, measures, and tells. */
import { writeFileSync } from "node:fs";
import { type Arguments, BadArgument, HELP, readArguments } from "./arguments.ts";
import { killChildren } from "./child/child.ts";
import { Progress } from "./progress.ts";
import { writeJson } from "./report/json.ts";
import { describeMachine } from "./report/machine.ts";
import { writeMarkdown } from "./report/markdown.ts";
import { reasonOf } from "./report/reason.ts";
import type { Report } from "./report/report.ts";
import { writeTable } from "./report/table.ts";
import { Results } from "./results.ts";
import { runAll } from "./run.ts";
import { installPeers, versionOf } from "./set-up.ts";
import { FULL, QUICK, type Sizes } from "./sizes.ts";
import { Stores } from "./stores.ts";
import { removeFolders } from "./stores/place.ts";
import { signalServers } from "./stores/server-process.ts";
import type { Subject } from "./subject.ts";
import { allSubjects, selectSubjects } from "./subjects.ts";
import { selectWorkloads } from "./workloads.ts";

interface Found {
  readonly subjects: readonly Subject[];
  readonly missing: Report["missing"];
  readonly versions: readonly string[];
}

try {
  const args = readArguments(process.argv.slice(2));
  if (args.help) process.stdout.write(HELP);
  else process.exitCode = await bench(args);
} catch (error) {
  if (!(error instanceof BadArgument)) throw error;
  console.error(`${error.message} See npm run bench -- --help.`);
  process.exitCode = 2;
}

async function bench(options: Arguments): Promise<number> {
  const started = performance.now();
  const progress = new Progress();
  const workloads = selectWorkloads(options.only);
  const chosen = selectSubjects(await allSubjects(), options.subjects, options.quick);
  const plain = options.quick ? QUICK : FULL;
  const sizes: Sizes = { ...plain, rounds: options.rounds ?? plain.rounds };
  const results = new Results();

  leaveCleanly();
  await using stores = new Stores();
  const { subjects, missing, versions } = await find(chosen, stores, progress);
  await runAll({ workloads, subjects, sizes, stores }, results, progress);
  progress.finished();

  const report: Report = {
    at: new Date(),
    command: ["npm run bench", ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : [])].join(" "),
    rounds: sizes.rounds,
    seconds: (performance.now() - started) / 1_000,
    machine: describeMachine(),
    versions,
    subjects,
    missing,
    rows: results.rows(workloads, subjects, sizes),
    leftOut: results.leftOut,
    remarks: results.remarks,
  };
  process.stdout.write(writeTable(report));
  if (options.json !== undefined) writeFileSync(options.json, writeJson(report));
  if (options.markdown !== undefined) writeFileSync(options.markdown, writeMarkdown(report));
  const broken = subjects.filter(({ name, package: peer }) => peer === undefined && results.isBroken(name));
  for (const { title } of broken) console.error(`${title} broke a promise: see the remarks.`);
  return broken.length === 0 ? 0 : 1;
}

/** Those that can be measured here, and why the others cannot. */
async function find(chosen: readonly Subject[], stores: Stores, progress: Progress): Promise<Found> {
  const peers = chosen.some((subject) => subject.package !== undefined);
  const notInstalled = peers ? installPeers((line) => progress.say(line)) : undefined;
  const subjects: Subject[] = [];
  const missing: { subject: string; reason: string }[] = [];
  const versions = new Set<string>();
  for (const subject of chosen) {
    const { package: peer } = subject;
    if (peer !== undefined && notInstalled !== undefined) {
      missing.push({ subject: subject.title, reason: notInstalled });
      continue;
    }
    try {
      const { version } = await stores.get(subject.store);
      if (version !== undefined) versions.add(version);
      if (peer !== undefined) versions.add(`${peer} ${versionOf(peer) ?? ""}`.trim());
      subjects.push(subject);
    } catch (error) {
      missing.push({ subject: subject.title, reason: reasonOf(error) });
    }
  }
  for (const { subject, reason } of missing) progress.say(`${subject} cannot be measured: ${reason}`);
  return { subjects, missing, versions: [...versions] };
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
