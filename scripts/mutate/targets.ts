/** Where flaws are planted: files and folders that are named, or the lines that differ from a revision. */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { join } from "node:path";

export interface Target {
  readonly file: string;
  /** Counted from 1. Undefined: all. */
  readonly lines?: ReadonlySet<number>;
}

/** Tests, and what only says something: texts of errors, of help and of completion; the suites that test engines. */
const LEFT =
  /\.test\.ts$|^src\/conformance\/|^src\/domain\/errors\.ts$|^src\/cli\/completion\/|(?:^|[-/])messages?\.ts$/;

export function namedTargets(root: string, names: readonly string[]): readonly Target[] {
  return names.flatMap((name) => {
    const path = join(root, name);
    if (!existsSync(path)) throw new Error(`There is no ${name}.`);
    const files = statSync(path).isDirectory()
      ? globSync("**/*.ts", { cwd: path }).map((file) => `${name}/${file}`)
      : [name];
    return files
      .map((file) => file.replaceAll(/\\|\/+/g, "/"))
      .filter(isTarget)
      .toSorted()
      .map((file) => ({ file }));
  });
}

/** What was committed since the branches parted, what was not committed, and what git does not know yet. */
export function changedTargets(root: string, base: string): readonly Target[] {
  const parting = git(root, ["merge-base", base, "HEAD"]).trim();
  const changed = linesOf(git(root, ["diff", "--unified=0", "--no-color", "--relative", parting, "--", "src"]));
  const fresh = git(root, ["ls-files", "--others", "--exclude-standard", "--", "src"]).split("\n");
  return [
    ...Array.from(changed, ([file, lines]) => ({ file, lines })),
    ...fresh.filter((file) => file !== "").map((file) => ({ file })),
  ].filter(({ file }) => file.endsWith(".ts") && isTarget(file));
}

/** The room that a file counts for in a table: a folder of src, or an engine. */
export function roomOf(file: string): string {
  const [first = "", second = "", third = ""] = file.split("/");
  return second === "engines" ? `${first}/${second}/${third}` : `${first}/${second.endsWith(".ts") ? "" : second}`;
}

function isTarget(file: string): boolean {
  return !LEFT.test(file);
}

function linesOf(diff: string): ReadonlyMap<string, Set<number>> {
  const found = new Map<string, Set<number>>();
  let lines = new Set<number>();
  for (const line of diff.split("\n")) {
    const file = /^\+\+\+ b\/(.+)$/.exec(line)?.[1];
    if (file !== undefined) found.set(file, (lines = new Set()));
    const [, from, many = "1"] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (from !== undefined) for (let n = 0; n < Number(many); n += 1) lines.add(Number(from) + n);
  }
  return found;
}

function git(root: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr.trim()}`);
  return stdout;
}
