/** `npm run chaos`: a run, or a run for each planted flaw; then the report. Exit code 0 only if all is as it must be. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { judge, type Judgement } from "./checker/check.ts";
import { readHistory } from "./checker/read-history.ts";
import { flawOf, withFlaw } from "./controls/catalogue.ts";
import { page } from "./report/page.ts";
import { textReport } from "./report/text.ts";
import { run } from "./run.ts";
import { fullRun, type Settings } from "./settings.ts";

async function play(settings: Settings, folder: string): Promise<Judgement> {
  // What is left of an earlier run with the same seed would be read as part of this one.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await run(settings, folder);
  const judgement = judge(readHistory(folder));
  writeFileSync(join(folder, "report.txt"), textReport(judgement));
  writeFileSync(join(folder, "report.html"), page(judgement));
  return judgement;
}

async function playPlain({ store, seed, minutes }: Arguments, folder: string): Promise<boolean> {
  console.log(`${store}, seed ${seed}, ${minutes} minutes; histories and report in ${folder}`);
  const judgement = await play(fullRun(store, seed, minutes), folder);
  process.stdout.write(`\n${textReport(judgement)}`);
  return judgement.violations.length === 0;
}

async function playControl(control: string, { store, seed, minutes }: Arguments, folder: string): Promise<boolean> {
  const { story = "", breaks = [] } = flawOf(control);
  const { violations } = await play(withFlaw(fullRun(store, seed, minutes), control), folder);
  const caught = violations.filter(({ rule }) => breaks.includes(rule));
  console.log(`${caught.length > 0 ? "caught" : "MISSED"}  ${control}: ${story}`);
  if (caught[0] !== undefined) console.log(`        ${caught[0].text}`);
  return caught.length > 0;
}

async function main(): Promise<boolean> {
  const chosen = parseArguments(process.argv.slice(2));
  const folder = resolve(chosen.folder ?? join("chaos-runs", `${chosen.store}-${chosen.seed}`));
  if (chosen.controls.length === 0) return await playPlain(chosen, folder);
  let allCaught = true;
  for (const control of chosen.controls) {
    allCaught = (await playControl(control, chosen, `${folder}-${control}`)) && allCaught;
  }
  return allCaught;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(error);
  console.error(USAGE);
  process.exitCode = 2;
}
