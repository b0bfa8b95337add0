/**
 * `npm run test:soak -- --minutes 60`: plays what is random at length. Each test that draws its own seeds goes on for a
 * share of the time, then real processes are hurt on each store. It goes on after a failure, and prints each one with its
 * seed, as soon as it is known.
 */
import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { inspect, parseArgs } from "node:util";
import { PLAYED } from "../test/kit/seeds.ts";
import { root } from "./tool.ts";

const USAGE = `npm run test:soak -- [--minutes 60] [--only WORD]

  --minutes  how long in all, at least as many as there are parts; 60 unless told otherwise
  --only     only the parts with this word in their name: simulation, locks, chaos, nats, …

Examples:
  npm run test:soak -- --minutes 10 --only simulation
  npm run test:soak -- --minutes 600          a night
`;

/** Parts of the chaos run: a store each. They take twice the share of a test, because a fault comes every five seconds. */
const CHAOS_STORES = ["sqlite", "nats", "nats-cluster", "postgres", "redis"];
const CHAOS_SHARE = 2;

/** What this reads of the events of a test run. */
interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name?: string;
    readonly message?: string;
    readonly details?: { readonly type?: string; readonly error?: Error };
  };
}

interface Part {
  readonly name: string;
  readonly share: number;
  /** Resolves to whether all was well, having printed what it played. */
  readonly play: (minutes: number) => Promise<boolean>;
}

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    only: { type: "string", default: "" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const minutes = Number(values.minutes);
if (values.help || !(minutes > 0)) {
  console.log(USAGE);
  process.exitCode = values.help ? 0 : 2;
} else process.exitCode = (await soak(minutes, values.only)) ? 0 : 1;

async function soak(totalMinutes: number, only: string): Promise<boolean> {
  const parts = [...randomTests(), ...chaosRuns()].filter(({ name }) => name.includes(only));
  const shares = parts.reduce((sum, { share }) => sum + share, 0);
  if (parts.length === 0) throw new Error(`No part has ${only} in its name.`);
  let allGood = true;
  for (const [index, { name, share, play }] of parts.entries()) {
    const own = (totalMinutes * share) / shares;
    console.log(`${index + 1}/${parts.length} ${name}, ${own.toFixed(1)} min`);
    const good = await play(own);
    if (!good) console.log(`  FAILED: ${name}`);
    allGood &&= good;
  }
  console.log(allGood ? "all good" : "There were failures; their seeds stand above.");
  return allGood;
}

/** A test file draws its own seeds when it asks the kit for them. */
function randomTests(): readonly Part[] {
  return globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { cwd: root })
    .filter((file) => readFileSync(join(root, file), "utf8").includes("new Seeds("))
    .toSorted()
    .map((file) => ({ name: file, share: 1, play: (own) => playFile(file, own) }));
}

async function playFile(file: string, ownMinutes: number): Promise<boolean> {
  let good = true;
  process.env["BATON_SOAK_MINUTES"] = String(ownMinutes);
  for await (const { type, data } of run({ files: [join(root, file)], cwd: root }) as AsyncIterable<TestEvent>) {
    const { name = file, message = "", details } = data;
    if (type === "test:diagnostic" && message.startsWith(PLAYED)) console.log(`  ${message}`);
    if (type !== "test:fail" || details?.type === "suite") continue;
    good = false;
    console.log(`  ${name}\n${inspect(details?.error?.cause ?? details?.error)}`);
  }
  delete process.env["BATON_SOAK_MINUTES"];
  return good;
}

function chaosRuns(): readonly Part[] {
  return CHAOS_STORES.map((store) => ({
    name: `chaos on ${store}`,
    share: CHAOS_SHARE,
    play: (own) => playChaos(store, own),
  }));
}

/** The report is printed whole: it names the seed, the figures and each violation. */
async function playChaos(store: string, ownMinutes: number): Promise<boolean> {
  const args = ["chaos/main.ts", "--engine", store, "--minutes", ownMinutes.toFixed(2)];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  return await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code === 0));
  });
}
