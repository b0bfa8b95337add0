/**
 * `npm test -- WORD…` runs the tests: all, or those whose path contains one of the words.
 *
 *     --changed   only those that reach a file that differs from main (`--base REV`: from another state), nearest first
 *     --all       what is drawn by lot otherwise, in full; so is what the words name
 *     --check     `npm run check` beside them; what it finds ends the run
 *
 * As many files at a time as keep the processors busy. The longest go first, so that none of them is left alone at the
 * end. What was compiled once is kept for the hundreds of processes and threads that tests start, and what servers write
 * goes to memory, where there is room: a disk would make those late that live by the clock.
 */
import { randomInt } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";
import { ALL } from "../test/kit/draw.ts";
import { CheckBeside } from "./check-beside.ts";
import { changedTests } from "./test-changed.ts";
import { inOrder, type Job, jobsOf, Times } from "./test-jobs.ts";
import { testFiles } from "./test-map.ts";
import { Pace } from "./test-pace.ts";
import { root } from "./tool.ts";

const MEMORY = "/dev/shm";
const MEMORY_NEEDED = 4 * 1024 ** 3;

/** A file that takes longer hangs: it is ended, and has failed. The longest take a third of it on a slow machine. */
const LONGEST_MS = 420_000;
const MOST_DRAWN = 1_000_000;

/** What a run of one file says of itself as a whole; it is said here of all files together. */
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) \d/;

interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly message?: string;
    readonly nesting?: number;
    readonly skip?: unknown;
    readonly details?: { readonly type?: string };
  };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    changed: { type: "boolean", default: false },
    base: { type: "string", default: "main" },
    all: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
  },
});

const startedAt = performance.now();
const times = new Times();
const counts = { passed: 0, failed: 0, skipped: 0 };
const report = new Readable({ objectMode: true, read: () => undefined });
report.compose(spec).pipe(process.stdout);
setUp();
const files = chosen();
const check = values.check ? new CheckBeside() : undefined;
const pace = new Pace();
const over = new AbortController();
void check?.result.then(({ ok }) => ok || over.abort());
await runAll(inOrder(jobsOf(files), times));
if (check !== undefined) {
  const { ok, output } = await check.result;
  if (!ok) process.exitCode = 1;
  tell(output.trim());
}
times.keep();
// The reporter's word for it: what failed is printed once more, at the end.
report.push({ type: "test:summary", data: { file: undefined } });
const { passed, failed, skipped } = counts;
tell(
  `${passed} passed, ${failed} failed, ${skipped} skipped, in ${files.length} files and ${secondsSince(startedAt)} s, ` +
    `up to ${pace.mostAtOnce} at a time, BATON_DRAW=${process.env["BATON_DRAW"] ?? "none"}`,
);
report.push(null);

function setUp(): void {
  process.chdir(root);
  if (values.check) process.env["BATON_TEST_BUILT"] = "yes";
  if (values.all) process.env["BATON_DRAW"] = ALL;
  else if (positionals.length === 0) process.env["BATON_DRAW"] ??= String(randomInt(MOST_DRAWN));
  process.env["NODE_COMPILE_CACHE"] ??= join(root, ".cache", "compiled");
  if (!hasRoom(MEMORY)) return;
  const folder = mkdtempSync(join(MEMORY, "baton-tests-"));
  // For servers that run as somebody else.
  chmodSync(folder, 0o1777);
  process.env["TMPDIR"] = folder;
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
}

function chosen(): readonly string[] {
  const named = testFiles().filter(
    (file) => positionals.length === 0 || positionals.some((word) => file.includes(word)),
  );
  if (named.length === 0) throw new Error(`No test file has ${positionals.join(" or ")} in its path.`);
  if (!values.changed) return named;
  const { files: near, told } = changedTests(values.base, named, times);
  tell(told);
  return near;
}

async function runAll(jobs: readonly Job[]): Promise<void> {
  const left = [...jobs];
  const running = new Set<Promise<void>>();
  let built = check === undefined;
  void check?.result.then(() => (built = true));
  while (left.length > 0 && !over.signal.aborted) {
    await pace.next();
    const next = left.findIndex(({ needsBuild }) => built || !needsBuild);
    if (next === -1) await check?.result;
    const [job] = left.splice(Math.max(0, next), 1);
    if (job === undefined) break;
    const play = runJob(job).finally(() => {
      pace.ended();
      running.delete(play);
    });
    running.add(play);
  }
  await Promise.all(running);
}

/** What it has to say is shown in one piece, when it has ended. */
async function runJob({ files: together, name }: Job): Promise<void> {
  const since = performance.now();
  const events: TestEvent[] = [];
  const signal = AbortSignal.any([AbortSignal.timeout(LONGEST_MS), over.signal]);
  for await (const event of run({
    files: [join(root, name)],
    argv: [...together],
    signal,
  }) as AsyncIterable<TestEvent>) {
    count(event);
    if (event.type !== "test:summary" && !isTotal(event)) events.push(event);
  }
  const from = ((since - startedAt) / 1_000).toFixed(1);
  const label = together.length === 0 ? name : `${together.length} files of quick tests`;
  events.push(diagnostic(`${label}: ${secondsSince(since)} s, from ${from} s on`));
  if (!over.signal.aborted) times.set(name, performance.now() - since);
  for (const event of events) report.push(event);
}

function tell(message: string): void {
  report.push(diagnostic(message));
}

function diagnostic(message: string): TestEvent {
  return { type: "test:diagnostic", data: { nesting: 0, message } };
}

function secondsSince(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1);
}

function count({ type, data }: TestEvent): void {
  if (type === "test:fail") process.exitCode = 1;
  if (data.details?.type === "suite") return;
  if (type === "test:fail") counts.failed += 1;
  else if (type === "test:pass" && data.skip !== undefined) counts.skipped += 1;
  else if (type === "test:pass") counts.passed += 1;
}

function isTotal({ type, data }: TestEvent): boolean {
  return type === "test:diagnostic" && data.nesting === 0 && TOTAL.test(data.message ?? "");
}

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize > MEMORY_NEEDED;
}
