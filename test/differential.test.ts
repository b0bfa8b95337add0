/**
 * The memory engine and the SQLite engine have one semantics: whatever they are asked, they answer the same. Random
 * scripts of calls are played on both. Run one alone, or more of them, with BATON_SEED and BATON_SCRIPTS.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { memoryEngine } from "../src/engines/memory/index.ts";
import { sqliteEngine } from "../src/engines/sqlite/index.ts";
import { compare, type Difference, type Engines, shrink } from "./differential/compare.ts";
import { makeScript } from "./differential/script.ts";
import { Random } from "./simulation/random.ts";

const FIRST_SEED = Number(process.env["BATON_SEED"] ?? 1);
const SCRIPTS = Number(process.env["BATON_SCRIPTS"] ?? (process.env["BATON_SEED"] === undefined ? 200 : 1));
const STEPS = 100;

test(`memory and SQLite answer the same to ${SCRIPTS} scripts of ${STEPS} calls`, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "baton-differential-"));
  const engines: Engines = [memoryEngine(), await sqliteEngine({ file: join(folder, "store.db"), synchronous: "off" })];
  context.after(async () => {
    await Promise.all(engines.map((engine) => engine.close()));
    rmSync(folder, { recursive: true, force: true });
  });
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SCRIPTS; seed += 1) {
    const found = await compare(engines, makeScript(new Random(seed), STEPS));
    if (found !== undefined) throw new Error(describe(seed, await shrink(engines, found)));
  }
});

function describe(seed: number, { script, answers: [memory, sqlite] }: Difference): string {
  const steps = script.map((burst) => `  ${JSON.stringify(burst)}`).join("\n");
  const show = (answer: unknown): string => inspect(answer, { depth: 9, breakLength: 120 });
  return (
    `The engines differ; BATON_SEED=${seed} plays it again. The shortest script that shows it:\n${steps}\n` +
    `memory answers ${show(memory)}\nsqlite answers ${show(sqlite)}`
  );
}
