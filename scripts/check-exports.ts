import { accessSync, constants, existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { root } from "./tool.ts";

/** What package.json promises and the build does not hold, and entry points that nobody can import. */
export function exportProblems(): string[] {
  const targets = Object.values(manifest.exports).filter((target) => target !== "./package.json");
  return [
    ...targets.flatMap((target) => [target, target.replace(/\.js$/, ".d.ts")]).flatMap(missingFromBuild),
    ...unexportedEntries(targets),
    ...Object.values(manifest.bin).flatMap(commandProblems),
  ];
}

/** Subpaths of the package, each with the source file behind it. */
export function sourceOfSubpaths(): Map<string, string> {
  const sources = new Map<string, string>();
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    if (!target.startsWith("./dist/")) continue;
    const source = target.replace("./dist/", "src/").replace(/\.js$/, ".ts");
    sources.set(subpath.replace(/^\./, manifest.name), source);
  }
  return sources;
}

function missingFromBuild(target: string): string[] {
  return existsSync(join(root, target)) ? [] : [`package.json exports ${target}, which the build does not have`];
}

function unexportedEntries(targets: readonly string[]): string[] {
  const exported = new Set(targets);
  return globSync("src/**/index.ts", { cwd: root })
    .filter((source) => !exported.has(source.replace(/^src/, "./dist").replace(/\.ts$/, ".js")))
    .map((source) => `${source} is an entry point that package.json does not export`);
}

function commandProblems(target: string): string[] {
  const file = join(root, target);
  if (!existsSync(file)) return [`package.json names the command ${target}, which the build does not have`];
  const problems: string[] = [];
  if (!readFileSync(file, "utf8").startsWith("#!/usr/bin/env node\n")) {
    problems.push(`${target} does not begin with #!/usr/bin/env node`);
  }
  try {
    accessSync(file, constants.X_OK);
  } catch {
    problems.push(`${target} is not executable`);
  }
  return problems;
}
