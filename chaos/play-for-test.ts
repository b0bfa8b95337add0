import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { judge, type Judgement } from "./checker/check.ts";
import { readHistory } from "./checker/read-history.ts";
import { run } from "./run.ts";
import type { Settings } from "./settings.ts";

/** One run in a folder of its own, which goes when it is as expected and stays when it is not. */
export async function play(
  settings: Settings,
  context: TestContext,
  expect: (judgement: Judgement) => void,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "baton-chaos-"));
  context.diagnostic(`BATON_SEED=${settings.seed}, histories in ${folder}`);
  await run(settings, folder);
  expect(judge(readHistory(folder)));
  rmSync(folder, { recursive: true, force: true });
}
