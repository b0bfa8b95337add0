/** What runs as one process each, in which order. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { testMap } from "./test-map.ts";
import { root } from "./tool.ts";

export interface Job {
  /** The file that is run. */
  readonly name: string;
  /** Those that it loads, when it is several in one. */
  readonly files: readonly string[];
  /** Not before dist is built anew. */
  readonly needsBuild: boolean;
}

const TIMES = join(root, ".cache/test-times.tsv");

/** These need no server, no process and no time: one process for all of them. */
const QUICK: readonly string[] = [
  "src/",
  "chaos/arguments.",
  "chaos/checker/",
  "test/bench/",
  "test/client/each.",
  "test/client/election.",
  "test/client/key-hold.",
  "test/client/locks.",
  "test/client/take.",
  "test/jetstream/",
  "test/kit/",
  "test/relay/config/config.",
  "test/relay/config/docs.",
  "test/relay/core/rules.",
  "test/relay/transforms/",
  "test/scripts/",
  "test/sqlite/black-box/",
];
const TOGETHER = "scripts/quick-tests.ts";

/** These run what is built. */
const NEEDS_BUILD = /^test\/(bundle|examples|relay\/core\/(examples|check))\.test/;
const COMMAND = "test/cli/baton-command.ts";

/** Those that take more than about fifteen seconds, longest first: for a clone in which nothing has run yet. */
const LONG: readonly string[] = [
  "test/nats/conformance-cluster",
  "test/locks/nats-cluster",
  "test/locks/consul-conformance",
  "test/nats/brief",
  "test/locks/consul",
  "test/conformance-broken",
  "test/nats/cluster-faults",
  "test/wake/away",
  "test/cli/lock",
  "chaos/stores",
  "test/nats/conformance",
  "test/redis/troubles",
  "test/nats/deleted",
  "test/nats/leader-death",
  "test/locks/sqlite-conformance",
  "test/locks/consul-processes",
  "test/nats/conformance-together",
  "test/sqlite/black-box",
  "test/relay/config/original",
  "test/locks/consul-access",
  "test/locks/nats-register",
  "test/postgres/black-box",
  "test/postgres/trains",
  "test/nats/ahead",
  "chaos/controls",
  "test/wake/idle",
  "test/nats-simulation",
];

export function jobsOf(files: readonly string[]): readonly Job[] {
  const { quick = [], slow = [] } = Object.groupBy(files, (file) => (isQuick(file) ? "quick" : "slow"));
  const together = quick.length > 1;
  return [
    ...(together ? [{ name: TOGETHER, files: quick, needsBuild: false }] : []),
    ...(together ? slow : files).map((name) => ({ name, files: [], needsBuild: needsBuild(name) })),
  ];
}

function needsBuild(file: string): boolean {
  return NEEDS_BUILD.test(file) || testMap([file]).get(file)?.has(COMMAND) === true;
}

function isQuick(file: string): boolean {
  return QUICK.some((start) => file.startsWith(start));
}

/** The longest first. */
export function inOrder(jobs: readonly Job[], times: Times): readonly Job[] {
  return jobs.toSorted((a, b) => times.of(b.name) - times.of(a.name) || (a.name < b.name ? -1 : 1));
}

/** How long the files took the last time. */
export class Times {
  readonly #known = new Map(readLines(TIMES).map(([name = "", ms]) => [name, Number(ms)]));

  /** In milliseconds; a guess for what never ran here. */
  of(name: string): number {
    const place = LONG.indexOf(name.replace(/\.test\.ts$/, ""));
    return this.#known.get(name) ?? (place === -1 ? 4_000 : 15_000 + (LONG.length - place) * 1_000);
  }

  set(name: string, ms: number): void {
    this.#known.set(name, Math.round(ms));
  }

  keep(): void {
    mkdirSync(dirname(TIMES), { recursive: true });
    writeFileSync(TIMES, Array.from(this.#known, ([name, ms]) => `${name}\t${ms}\n`).join(""));
  }
}

function readLines(file: string): readonly (readonly string[])[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, "utf8").trim();
  return text === "" ? [] : text.split("\n").map((line) => line.split("\t"));
}
