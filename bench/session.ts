/** One run: gets the peers and the servers, measures, and keeps what it found. */
import type { Arguments } from "./arguments.ts";
import { endCalibration } from "./calibration.ts";
import { Progress } from "./progress.ts";
import { defaultRecordFile, writeRecord } from "./record-file.ts";
import { RECORD_FORMAT, type RunRecord } from "./record.ts";
import { Recording } from "./recording.ts";
import { describeMachine } from "./report/machine.ts";
import { reasonOf } from "./report/reason.ts";
import { runAll } from "./run.ts";
import { installPeers, versionOf } from "./set-up.ts";
import { FULL, QUICK, type Sizes } from "./sizes.ts";
import { Stores } from "./stores.ts";
import type { Subject } from "./subject.ts";
import { allSubjects, selectSubjects } from "./subjects.ts";
import { selectWorkloads } from "./workloads.ts";

interface Found extends Pick<RunRecord, "missing" | "versions" | "stores"> {
  readonly subjects: readonly Subject[];
}

export interface Session {
  readonly record: RunRecord;
  /** Those of Baton that lost exclusivity, order or items. */
  readonly broken: readonly Subject[];
}

const SEEDS = 1_000_000;

export async function runSession(options: Arguments): Promise<Session> {
  const at = new Date();
  const progress = new Progress();
  const sizes: Sizes = { ...(options.quick ? QUICK : FULL), ...options.sizes };
  const workloads = selectWorkloads(options.only, sizes, options.quick);
  const chosen = selectSubjects(await allSubjects(), options.subjects, options.quick);
  const seed = options.seed ?? 1 + Math.floor(Math.random() * SEEDS);
  const file = options.json ?? defaultRecordFile(at);
  const recording = new Recording();

  await using stores = new Stores();
  const { subjects, ...found } = await find(chosen, stores, progress);
  const recordNow = (): RunRecord => ({
    format: RECORD_FORMAT,
    at: at.toISOString(),
    command: ["npm run bench", ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : [])].join(" "),
    seed,
    rounds: sizes.rounds,
    seconds: (Date.now() - at.getTime()) / 1_000,
    machine: describeMachine(),
    ...found,
    // What only a run can use is left out by JSON, or does no harm.
    subjects,
    workloads: workloads.map((workload) => ({
      name: workload.name,
      group: workload.group,
      title: workload.title,
      metrics: workload.metrics(sizes),
    })),
    samples: recording.samples,
    leftOut: recording.leftOut,
    remarks: recording.remarks,
  });
  progress.say(`seed ${seed}; results in ${file}`);
  const keep = (): void => writeRecord(file, recordNow());
  await runAll({ workloads, subjects, rounds: sizes.rounds, seed, sizes, stores }, recording, progress, keep);
  endCalibration();
  progress.finished();
  const broken = subjects.filter((subject) => subject.package === undefined && recording.isBroken(subject.name));
  return { record: recordNow(), broken };
}

/** Those that can be measured here, and why the others cannot. */
async function find(chosen: readonly Subject[], stores: Stores, progress: Progress): Promise<Found> {
  const peers = chosen.some((subject) => subject.package !== undefined);
  const notInstalled = peers ? installPeers((line) => progress.say(line)) : undefined;
  const subjects: Subject[] = [];
  const missing: { subject: string; reason: string }[] = [];
  const versions = new Set<string>();
  const settings = new Map<string, { name: string; settings: string }>();
  for (const subject of chosen) {
    const { package: peer } = subject;
    if (peer !== undefined && notInstalled !== undefined) {
      missing.push({ subject: subject.title, reason: notInstalled });
      continue;
    }
    try {
      const store = await stores.get(subject.store);
      settings.set(subject.store, { name: store.version, settings: store.settings });
      versions.add(store.version);
      if (peer !== undefined) versions.add(`${peer} ${versionOf(peer) ?? ""}`.trim());
      subjects.push(subject);
    } catch (error) {
      missing.push({ subject: subject.title, reason: reasonOf(error) });
    }
  }
  for (const { subject, reason } of missing) progress.say(`${subject} cannot be measured: ${reason}`);
  return { subjects, missing, versions: [...versions], stores: [...settings.values()] };
}
