/**
 * Runs the tests: all, or those whose path contains one of the words given. Beside the usual ones run, one at a time, those
 * that keep a processor busy, and, one at a time, those that only wait. The longest go first, so that none of them is left
 * alone at the end. What was compiled once is kept for the hundreds of processes and threads that tests start, and
 * what servers write goes to memory, where there is room: a disk would make those late that live by the clock.
 */
import { chmodSync, existsSync, globSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { root } from "./tool.ts";

/** Of each kind. With more, those that live by the clock are late. */
const AT_ONCE = { usual: 2, busy: 1, idle: 1 };
type Kind = keyof typeof AT_ONCE;
const KINDS: readonly Kind[] = ["usual", "busy", "idle"];

const MEMORY = "/dev/shm";
const MEMORY_NEEDED = 4 * 1024 ** 3;

/** They compute, or are a crowd of processes by themselves. */
const BUSY =
  /^(chaos\/|test\/(nats-simulation|simulation|locks\/simulation|jetstream|differential|nats\/conformance-cluster)\.)/;

/** They do next to nothing but wait, for servers that choose a leader or sessions that run out. */
const IDLE =
  /^test\/(demo|capacity|conformance-broken|nats\/(cluster-faults|two-workers)|redis\/(troubles|register|failover)|wake\/faults|locks\/(consul|nats-cluster|nats-hold|.*-register|conformance-(memory|broken)))/;

/** Quick and light: while the first of the busy ones needs the machine for itself. */
const LIGHT = /^(src|test\/relay)\//;

/** Those that take more than about twenty seconds, longest first. */
const LONG: readonly string[] = [
  "test/nats/conformance-cluster",
  "test/locks/consul-conformance",
  "test/cli/lock",
  "test/locks/consul",
  "test/nats/conformance",
  "test/postgres/conformance",
  "test/locks/sqlite-conformance",
  "test/conformance-sqlite",
  "test/locks/nats-cluster",
  "test/nats/cluster-faults",
  "test/postgres/server",
  "test/locks/consul-processes",
  "test/cli/elect",
  "test/postgres/black-box",
  "test/client/counter",
  "test/locks/sqlite-register",
  "chaos/controls",
  "test/conformance-broken",
  "test/nats-simulation",
  "test/locks/simulation",
];

/** A file that takes longer hangs: it is ended, and has failed. The longest take a third of it on a slow machine. */
const LONGEST_MS = 420_000;

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

const startedAt = performance.now();
const words = process.argv.slice(2);
const found = globSync(["src/**/*.test.ts", "test/**/*.test.ts", "chaos/**/*.test.ts"], { cwd: root })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .toSorted((a, b) => turnOf(a) - turnOf(b) || (a < b ? -1 : 1));
if (found.length === 0) throw new Error(`No test file has ${words.join(" or ")} in its path.`);

process.chdir(root);
process.env["NODE_COMPILE_CACHE"] ??= join(root, ".cache", "compiled");
if (hasRoom(MEMORY)) {
  const folder = mkdtempSync(join(MEMORY, "baton-tests-"));
  // For servers that run as somebody else.
  chmodSync(folder, 0o1777);
  process.env["TMPDIR"] = folder;
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
}

const counts = { passed: 0, failed: 0, skipped: 0 };
const report = new Readable({ objectMode: true, read: () => undefined });
report.compose(spec).pipe(process.stdout);
const left = { busy: [], idle: [], usual: [], ...Object.groupBy(found, kindOf) };
await Promise.all(KINDS.flatMap((kind) => Array.from({ length: AT_ONCE[kind] }, () => lane(kind))));
// The reporter's word for it: what failed is printed once more, at the end.
report.push({ type: "test:summary", data: { file: undefined } });
const { passed, failed, skipped } = counts;
const message = `${passed} passed, ${failed} failed, ${skipped} skipped, in ${found.length} files and ${secondsSince(startedAt)} s`;
report.push({ type: "test:diagnostic", data: { nesting: 0, message } });
report.push(null);

/** Takes one file after the other: of its kind, and when none is left, of the others. */
async function lane(own: Kind): Promise<void> {
  for (;;) {
    const kind = [own, ...KINDS].find((one) => left[one].length > 0);
    const file = kind === undefined ? undefined : left[kind].shift();
    if (file === undefined) return;
    await runFile(file);
  }
}

/** What it has to say is shown in one piece, when it has ended. */
async function runFile(file: string): Promise<void> {
  const since = performance.now();
  const events: TestEvent[] = [];
  for await (const event of run({
    files: [join(root, file)],
    signal: AbortSignal.timeout(LONGEST_MS),
  }) as AsyncIterable<TestEvent>) {
    count(event);
    if (event.type !== "test:summary" && !isTotal(event)) events.push(event);
  }
  events.push({ type: "test:diagnostic", data: { nesting: 0, message: `${file}: ${secondsSince(since)} s` } });
  for (const event of events) report.push(event);
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

function kindOf(file: string): Kind {
  if (BUSY.test(file)) return "busy";
  return IDLE.test(file) ? "idle" : "usual";
}

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize > MEMORY_NEEDED;
}

function turnOf(file: string): number {
  if (LIGHT.test(file)) return -1;
  const turn = LONG.indexOf(file.replace(/\.test\.ts$/, ""));
  return turn === -1 ? LONG.length : turn;
}
