/**
 * Keeps the documentation true: the TypeScript of README.md and docs/ compiles against what the package exports,
 * and links between files lead somewhere. A block that is not meant to compile is opened with "ts ignore".
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { sourceOfSubpaths } from "./check-exports.ts";
import { type Link, type Page, readMarkdown } from "./markdown.ts";
import { root, runTool } from "./tool.ts";

const CACHE = join(root, ".cache/docs");

export function docProblems(): string[] {
  const pages = new Map<string, Page>();
  for (const file of globSync("**/*.md", { cwd: root, exclude: ["**/node_modules", "dist", ".cache"] }).toSorted()) {
    pages.set(file, readMarkdown(readFileSync(join(root, file), "utf8")));
  }
  return [...linkProblems(pages), ...codeProblems(pages)];
}

function linkProblems(pages: ReadonlyMap<string, Page>): string[] {
  return Array.from(pages, ([file, page]) =>
    page.links
      .filter((link) => !/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(link.target))
      .flatMap((link) => linkProblem(pages, file, link)),
  ).flat();
}

function linkProblem(pages: ReadonlyMap<string, Page>, file: string, { line, target }: Link): string[] {
  const [path = "", anchor] = decodeURI(target).split("#");
  const found = path === "" ? file : normalize(path.startsWith("/") ? path.slice(1) : join(dirname(file), path));
  if (found.startsWith("..")) return [`${file}:${line}: the link ${target} leaves the repository`];
  if (!existsSync(join(root, found))) return [`${file}:${line}: the link ${target} leads nowhere`];
  const page = pages.get(found);
  if (anchor !== undefined && page?.anchors.has(anchor) === false) {
    return [`${file}:${line}: ${found} has no heading for ${target}`];
  }
  return [];
}

/** Each block becomes a module that keeps its lines, so that the compiler's positions are those of the page. */
function codeProblems(pages: ReadonlyMap<string, Page>): string[] {
  rmSync(CACHE, { recursive: true, force: true });
  const modules = new Map<string, string>();
  for (const [file, page] of pages) {
    if (file !== "README.md" && !file.startsWith("docs/")) continue;
    for (const block of page.blocks) {
      if (!["ts", "typescript"].includes(block.language) || block.note.split(" ").includes("ignore")) continue;
      const name = `${file.replaceAll("/", "__")}.${block.line}.ts`;
      mkdirSync(CACHE, { recursive: true });
      writeFileSync(join(CACHE, name), "\n".repeat(block.line - 1) + block.code);
      modules.set(name, file);
    }
  }
  if (modules.size === 0) return [];
  writeFileSync(join(CACHE, "tsconfig.json"), JSON.stringify(configuration([...modules.keys()])));
  const { ok, output } = runTool("tsc", ["-p", CACHE, "--pretty", "false"]);
  if (ok) return [];
  return output
    .trim()
    .split("\n")
    .map((line) => {
      const [, name = "", position = "", message = ""] = /^(?:.*\/)?([^/(]+\.ts)\((\d+,\d+)\): (.*)$/.exec(line) ?? [];
      const file = modules.get(name);
      return file === undefined ? line : `${file}:${position.replace(",", ":")}: ${message}`;
    });
}

function configuration(files: readonly string[]): object {
  const up = relative(CACHE, root);
  const sources = Array.from(sourceOfSubpaths(), ([subpath, source]) => [subpath, [join(up, source)]] as const);
  return {
    extends: join(up, "tsconfig.json"),
    // An example may leave a variable unused, and exports nothing.
    compilerOptions: {
      declaration: false,
      isolatedDeclarations: false,
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: Object.fromEntries(sources),
    },
    files,
    include: [],
  };
}

if (import.meta.main) {
  const problems = docProblems();
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
