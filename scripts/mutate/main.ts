/** `npm run mutate`: see USAGE. */
import { randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../tool.ts";
import { mutate } from "./mutate.ts";
import { table } from "./report.ts";
import { changedTargets, namedTargets } from "./targets.ts";
import { isKilled, type Outcome } from "./trial.ts";

const USAGE = `npm run mutate -- [FILE or FOLDER …] [options]

Plants small flaws in a copy of the tree, one after the other, runs the tests that run the place, and lists the flaws
that no test caught. Without a file or folder: all of src.

  --changed         only lines that differ from main, with what is not committed
  --base REV        only lines that differ from this revision
  --most N          so many flaws at most; 30 unless told otherwise
  --per-folder      so many in each folder of src and in each engine
  --seed N          draws the same flaws again; the seed of a run is printed
  --budget SECONDS  what the tests of one flaw may take without the flaw; 90 unless told otherwise
  --lanes N         flaws that are tried at once; 2 unless told otherwise
  --list            only says what would be planted
  --table           10 flaws per folder of src, and the kill rates go into CONTRIBUTING.md

The first run measures each test file that it needs, which takes as long as these tests. What it measures is kept in
.cache/mutate until the source or the test changes. Ctrl-C ends a run with what is known so far.

It ends with 0 if each flaw was caught, with 1 if some survived or could not be judged, with 2 if it was called wrongly.

Examples:
  npm run mutate -- --changed                              before a commit
  npm run mutate -- src/worker --most 10
  npm run mutate -- src/engines/postgres/sql --list --most 50
  npm run mutate -- src/locks --seed 17                    the flaws of another run again
  npm run mutate -- --table --seed 17                      the table of CONTRIBUTING.md
`;

const TABLE = /(<!-- kill rates: .*-->\n)[^]*?(\n<!-- end of kill rates -->)/;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values, positionals } = read();
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const seed = Number(values.seed ?? randomInt(1, 1_000_000));
  const most = Number(values.most ?? (values.table ? 10 : 30));
  const numbers = { seed, most, lanes: Number(values.lanes), budgetSeconds: Number(values.budget) };
  for (const [name, value] of Object.entries(numbers)) {
    if (!Number.isInteger(value) || value < 1) throw new Error(`${name}: expected a whole number from 1 on.`);
  }
  const base = values.base ?? (values.changed ? "main" : undefined);
  if (base !== undefined && positionals.length > 0) throw new Error("Either lines that differ, or files and folders.");
  const targets =
    base === undefined
      ? namedTargets(root, positionals.length > 0 ? positionals : ["src"])
      : changedTargets(root, base);
  const outcomes = await mutate({
    ...numbers,
    root,
    targets,
    perFolder: values["per-folder"] || values.table,
    listOnly: values.list,
    print: (line) => console.log(line),
  });
  if (values.table && outcomes.length > 0) writeTable(outcomes, seed);
  return outcomes.some((outcome) => isKilled(outcome) !== true) ? 1 : 0;
}

function read() {
  return parseArgs({
    allowPositionals: true,
    options: {
      changed: { type: "boolean", default: false },
      base: { type: "string" },
      most: { type: "string" },
      "per-folder": { type: "boolean", default: false },
      seed: { type: "string" },
      budget: { type: "string", default: "90" },
      lanes: { type: "string", default: "2" },
      list: { type: "boolean", default: false },
      table: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
}

function writeTable(outcomes: readonly Outcome[], seed: number): void {
  const file = join(root, "CONTRIBUTING.md");
  const day = new Date().toISOString().slice(0, 10);
  const text = `Drawn by \`--seed ${seed}\` on ${day}:\n\n${table(outcomes)}`;
  const page = readFileSync(file, "utf8");
  if (!TABLE.test(page)) throw new Error("CONTRIBUTING.md has no place for the table of kill rates.");
  writeFileSync(
    file,
    page.replace(TABLE, (_, begin: string, end: string) => `${begin}\n${text}\n${end}`),
  );
}
