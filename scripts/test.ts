/**
 * Runs the tests: all, or those whose path contains one of the words given. The longest go first, so that none of them is left
 * alone at the end, and what was compiled once is kept for the hundreds of processes and threads that tests start.
 */
import { globSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { root } from "./tool.ts";

/** Most of them wait for leases and restarts most of the time. */
const AT_ONCE = 3;
const BUSY_AT_ONCE = 2;

/** Those that take more than about twenty seconds, longest first. */
const LONG: readonly string[] = [
  "test/nats/conformance-cluster",
  "test/locks/consul-conformance",
  "test/locks/nats-cluster",
  "test/nats/conformance",
  "test/locks/sqlite-conformance",
  "test/conformance-sqlite",
  "test/cli/lock",
  "test/postgres/conformance",
  "test/redis/conformance",
  "test/conformance-broken",
  "test/locks/consul",
  "test/postgres/black-box",
  "test/redis/black-box",
  "test/redis/troubles",
  "test/client/counter",
  "test/locks/consul-processes",
  "test/locks/sqlite-register",
];

/** They do nothing but compute. */
const COMPUTING: ReadonlySet<string> = new Set([
  "test/nats-simulation",
  "test/simulation",
  "test/locks/simulation",
  "test/jetstream",
  "test/differential",
]);

const words = process.argv.slice(2);
const found = globSync(["src/**/*.test.ts", "test/**/*.test.ts", "chaos/**/*.test.ts"], { cwd: root })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .toSorted((a, b) => turnOf(a) - turnOf(b) || (a < b ? -1 : 1));
if (found.length === 0) throw new Error(`No test file has ${words.join(" or ")} in its path.`);

process.chdir(root);
process.env["NODE_COMPILE_CACHE"] ??= join(root, ".cache", "compiled");
Readable.from(events())
  .on("data", ({ type }: TestEvent) => {
    if (type === "test:fail") process.exitCode = 1;
  })
  .compose(spec)
  .pipe(process.stdout);

interface TestEvent {
  readonly type: string;
}

async function* events(): AsyncGenerator<TestEvent> {
  const { waiting = [], busy = [] } = Object.groupBy(found, kindOf);
  if (waiting.length > 0) yield* run({ files: paths(waiting), concurrency: AT_ONCE });
  if (busy.length > 0) yield* run({ files: paths(busy), concurrency: BUSY_AT_ONCE });
}

/** Computing, and crowds of processes, would make others late that live by the clock: those come when the others are done. */
function kindOf(file: string): "waiting" | "busy" {
  return COMPUTING.has(nameOf(file)) || file.startsWith("chaos/") ? "busy" : "waiting";
}

function paths(files: readonly string[]): string[] {
  return files.map((file) => join(root, file));
}

function turnOf(file: string): number {
  const turn = LONG.indexOf(nameOf(file));
  return turn === -1 ? LONG.length : turn;
}

function nameOf(file: string): string {
  return file.replace(/\.test\.ts$/, "");
}
