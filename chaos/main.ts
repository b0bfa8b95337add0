/** `npm run chaos`: a run, or a run for each planted flaw; then the report. Exit code 0 only if all is as it must be. */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { isGood, judge, type Judgement } from "./checker/check.ts";
import { readHistory } from "./checker/read-history.ts";
import { flawOf, withFlaw } from "./controls/catalogue.ts";
import { page } from "./report/page.ts";
import { textReport } from "./report/text.ts";
import { run } from "./run.ts";
import { fullRun, type Settings } from "./settings.ts";

function folderOf({ folder, store, seed }: Arguments): string {
  return resolve(folder ?? join("chaos-runs", `${store}-${seed}`));
}

/** Each planted flaw has a run of its own. */
function foldersOf(chosen: Arguments): readonly string[] {
  const folder = folderOf(chosen);
  return chosen.controls.length === 0 ? [folder] : chosen.controls.map((control) => `${folder}-${control}`);
}

/** A folder of somebody else's would be gone with all that is in it. */
function refuseForeign(folder: string): void {
  if (!existsSync(folder) || existsSync(join(folder, "run.history"))) return;
  if (statSync(folder).isDirectory() && readdirSync(folder).length === 0) return;
  throw new Error(`--out: ${folder} has something in it that no chaos run wrote; choose another folder`);
}

async function play(settings: Settings, folder: string, watch?: (story: string) => void): Promise<Judgement> {
  // What is left of an earlier run with the same seed would be read as part of this one.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run(settings, folder, watch);
  const judgement = judge(readHistory(folder));
  writeFileSync(join(folder, "report.txt"), textReport(judgement));
  writeFileSync(join(folder, "report.html"), page(judgement));
  return judgement;
}

async function playPlain({ store, seed, minutes }: Arguments, folder: string): Promise<boolean> {
  console.log(`${store}, seed ${seed}, ${minutes} min and the time to drain; histories and report go to ${folder}`);
  const judgement = await play(fullRun(store, seed, minutes), folder, (story) => console.log(`  ${story}`));
  process.stdout.write(`\n${textReport(judgement)}\nWith a timeline of each key: ${join(folder, "report.html")}\n`);
  return isGood(judgement);
}

async function playControl(control: string, { store, seed, minutes }: Arguments, folder: string): Promise<boolean> {
  const { story = "", breaks = [] } = flawOf(control);
  const { violations } = await play(withFlaw(fullRun(store, seed, minutes), control), folder);
  const caught = violations.filter(({ rule }) => breaks.includes(rule));
  console.log(`${caught.length > 0 ? "caught" : "MISSED"}  ${control}: ${story}`);
  if (caught[0] !== undefined) console.log(`        ${caught[0].text}`);
  return caught.length > 0;
}

async function main(chosen: Arguments): Promise<boolean> {
  if (chosen.controls.length === 0) return await playPlain(chosen, folderOf(chosen));
  const folders = foldersOf(chosen);
  let allCaught = true;
  for (const [index, control] of chosen.controls.entries()) {
    const folder = folders[index] ?? "";
    allCaught = (await playControl(control, chosen, folder)) && allCaught;
  }
  return allCaught;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const chosen = understood(process.argv.slice(2));
if (chosen === "help") console.log(USAGE);
else if (chosen === undefined) process.exitCode = 2;
else process.exitCode = (await main(chosen)) ? 0 : 1;

/** Undefined: what is wrong was said. */
function understood(args: readonly string[]): Arguments | "help" | undefined {
  try {
    const read = parseArguments(args);
    if (read === "help") return read;
    for (const folder of foldersOf(read)) refuseForeign(folder);
    return read;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return undefined;
  }
}
