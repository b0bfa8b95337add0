/**
 * Runs the tests: all, or those whose path contains one of the words given. The longest go first, so that none of them is left
 * alone at the end, and what was compiled once is kept for the hundreds of processes and threads that tests start.
 */
import { globSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { root } from "./tool.ts";

/** Most of them wait for leases and restarts most of the time. */
const AT_ONCE = 4;

/** Those that take more than about twenty seconds, longest first. */
const LONG: readonly string[] = [
  "test/nats/conformance-cluster",
  "test/nats-simulation",
  "chaos/controls",
  "test/locks/nats-cluster",
  "test/locks/consul-conformance",
  "test/relay/core/examples",
  "test/postgres/conformance",
  "test/redis/conformance",
  "test/postgres/black-box",
  "test/redis/black-box",
  "test/redis/troubles",
  "chaos/postgres",
  "chaos/redis",
  "test/nats/conformance",
  "test/locks/sqlite-conformance",
  "test/conformance-sqlite",
  "test/cli/lock",
  "test/locks/simulation",
  "test/conformance-broken",
  "test/locks/consul",
  "chaos/sqlite",
  "chaos/nats",
  "test/client/counter",
  "test/simulation",
  "test/locks/consul-processes",
  "test/locks/sqlite-register",
];

const words = process.argv.slice(2);
const found = globSync(["src/**/*.test.ts", "test/**/*.test.ts", "chaos/**/*.test.ts"], { cwd: root })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .toSorted((a, b) => turnOf(a) - turnOf(b) || (a < b ? -1 : 1));
if (found.length === 0) throw new Error(`No test file has ${words.join(" or ")} in its path.`);

process.chdir(root);
process.env["NODE_COMPILE_CACHE"] ??= join(root, ".cache", "compiled");
run({ files: found.map((file) => join(root, file)), concurrency: AT_ONCE })
  .on("test:fail", () => (process.exitCode = 1))
  .compose(spec)
  .pipe(process.stdout);

function turnOf(file: string): number {
  const turn = LONG.indexOf(file.replace(/\.test\.ts$/, ""));
  return turn === -1 ? LONG.length : turn;
}
