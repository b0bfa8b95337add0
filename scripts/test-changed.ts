/** The tests that reach what has changed, the nearest first, for as long as they take together less than a minute. */
import { spawnSync } from "node:child_process";
import type { Times } from "./test-jobs.ts";
import { testMap, testsOf } from "./test-map.ts";
import { root } from "./tool.ts";

/** As if they ran one after the other: about four run at a time. */
const MOST_MS = 160_000;
/** One that takes longer is left to `npm test`, unless it has changed itself. */
const LONGEST_MS = 40_000;

export interface ChangedTests {
  readonly files: readonly string[];
  readonly told: string;
}

export function changedTests(base: string, named: readonly string[], times: Times): ChangedTests {
  const changed = changedFiles(base);
  const reaching = testsOf(changed, testMap(named));
  const files: string[] = [];
  const left: string[] = [];
  let ms = 0;
  for (const file of reaching) {
    const own = times.of(file);
    const fits = changed.includes(file) || (own <= LONGEST_MS && ms + own <= MOST_MS);
    if (fits) ms += own;
    (fits ? files : left).push(file);
  }
  const leftOut = left.length === 0 ? "" : ` Left out, for npm test:\n${list(left)}`;
  const told = `${changed.length} files differ from ${base}; ${reaching.length} test files reach them, ${files.length} of these run.${leftOut}`;
  return { files, told };
}

function list(files: readonly string[]): string {
  return files.map((file) => `  ${file}`).join("\n");
}

/** Committed or not, and what is new. */
function changedFiles(base: string): readonly string[] {
  const fork = git("merge-base", base, "HEAD").trim();
  const text = git("diff", "--name-only", fork) + git("ls-files", "--others", "--exclude-standard");
  return text.split("\n").filter((line) => line !== "");
}

function git(...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("git", words, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${words.join(" ")} failed: ${stderr}`);
  return stdout;
}
