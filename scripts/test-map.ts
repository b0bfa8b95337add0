/**
 * Which tests reach which files: by imports, and by the names of the files that a test starts or reads. Nothing is run for
 * it. Of the stores that a client loads when it is asked for them, only those count that the test's own files name.
 */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { root } from "./tool.ts";

/** By its path from the root, with the number of steps from the test: 0 is the test itself. */
export type Reach = ReadonlyMap<string, number>;

const TESTS = ["src/**/*.test.ts", "test/**/*.test.ts", "chaos/**/*.test.ts"];

/** `import type` leaves nothing at run time. */
const STATEMENT = /^(?:import|export)\s+(?!type\b)[^;"]*?\bfrom "([^"]+)"|^import "([^"]+)"/gm;
const LAZY = /\bimport\("([^"]+)"\)/g;
/** A path that is put together from the folder of the file: `join(import.meta.dirname, "children", "worker.ts")`. */
const BESIDE = /\bjoin\(import\.meta\.dirname,([^()]*)/g;
/** A literal that looks like the path of a module: "./thread.ts", "../black-box/worker". */
const PATH = /["`](\.{1,2}\/[\w./-]+|[\w./-]+\.ts)["`]/g;
const LITERAL = /["`]([\w./-]+)/g;
const STORES = ["memory", "sqlite", "nats", "postgres", "redis", "consul"] as const;
const STORE_FILE = /^src\/(?:engines\/(\w+)|(consul))\//;

interface Edges {
  readonly eager: readonly string[];
  readonly lazy: readonly string[];
  /** The stores that its literals name. */
  readonly stores: readonly string[];
}

const edges = new Map<string, Edges>();
let scriptFiles: readonly string[] | undefined;

export function testFiles(): readonly string[] {
  return globSync(TESTS, { cwd: root }).map(slashed).toSorted();
}

/** What every test reaches. */
export function testMap(tests: readonly string[] = testFiles()): ReadonlyMap<string, Reach> {
  return new Map(tests.map((test) => [test, reachOf(test)]));
}

/** The tests that reach one of the files, the nearest first. */
export function testsOf(files: Iterable<string>, map: ReadonlyMap<string, Reach> = testMap()): readonly string[] {
  const wanted = [...files].map(slashed);
  const near = (reach: Reach): number => Math.min(...wanted.map((file) => reach.get(file) ?? Infinity));
  const named = new Set(wanted.map((file) => file.replace(/\.ts$/, ".test.ts")));
  return [...map]
    .map(([test, reach]) => ({ test, steps: named.has(test) ? 0 : near(reach) }))
    .filter(({ steps }) => steps < Infinity)
    .toSorted((a, b) => a.steps - b.steps || (a.test < b.test ? -1 : 1))
    .map(({ test }) => test);
}

function reachOf(test: string): Reach {
  const own = walk(test, (file) => !file.startsWith("src/") || file === test);
  const stores = new Set([...own.keys()].filter((file) => !file.startsWith("src/")).flatMap((file) => of(file).stores));
  if (test.startsWith("src/")) for (const store of of(test).stores) stores.add(store);
  return walk(test, (file) => {
    const [, engine, consul] = STORE_FILE.exec(file) ?? [];
    const store = engine ?? consul;
    return store === undefined || stores.has(store);
  });
}

/** Lazy imports are followed as far as they are wanted, all others always. */
function walk(start: string, wantsLazy: (file: string) => boolean): Reach {
  const reach = new Map([[start, 0]]);
  // A map goes on over what is added to it meanwhile.
  for (const [file, steps] of reach) {
    const { eager, lazy } = of(file);
    for (const next of [...eager, ...lazy.filter(wantsLazy)]) if (!reach.has(next)) reach.set(next, steps + 1);
  }
  return reach;
}

function of(file: string): Edges {
  const known = edges.get(file);
  if (known !== undefined) return known;
  const found = /\.(ts|js)$/.test(file) ? read(file) : { eager: [], lazy: [], stores: [] };
  edges.set(file, found);
  return found;
}

function read(file: string): Edges {
  const text = withoutComments(readFileSync(join(root, file), "utf8"));
  const folder = dirname(file);
  const eager = new Set<string>();
  const take = (path: string): void => filesAt(path).forEach((one) => eager.add(one));
  for (const [, named, bare] of text.matchAll(STATEMENT)) imported(folder, named ?? bare ?? "").forEach(take);
  for (const [, words = ""] of text.matchAll(BESIDE)) {
    take(join(folder, ...Array.from(words.matchAll(LITERAL), ([, word = ""]) => word)));
  }
  for (const [, path = ""] of text.matchAll(PATH)) {
    const from = path.startsWith(".") ? [folder] : [folder, "."];
    const found = from.flatMap((start) => filesAt(join(start, path)));
    for (const one of found.length > 0 ? found : endingWith(path)) eager.add(one);
  }
  const lazy = Array.from(text.matchAll(LAZY), ([, path = ""]) => imported(folder, path))
    .flat()
    .flatMap(filesAt);
  const stores = STORES.filter((store) => new RegExp(`["'\`][^"'\`\\n]*\\b${store}`).test(text));
  for (const one of lazy) eager.delete(one);
  return { eager: [...eager], lazy, stores };
}

/** Packages lead nowhere, apart from our own. */
function imported(folder: string, specifier: string): readonly string[] {
  if (specifier.startsWith(".")) return [join(folder, specifier)];
  const subpath = specifier.replace(new RegExp(`^${manifest.name}(?=/|$)`), ".");
  const exported = Object.entries(manifest.exports).find(([name]) => name === subpath)?.[1];
  return exported === undefined ? [] : [exported];
}

/** The file, or the modules of the folder; for what is built, its source. */
function filesAt(path: string): readonly string[] {
  const source = slashed(path).replace(/^(?:\.\/)?dist\/(.+)\.js$/, "src/$1.ts");
  if (source.startsWith("..")) return [];
  for (const candidate of [source, `${source}.ts`]) {
    const full = join(root, candidate);
    if (!existsSync(full)) continue;
    if (statSync(full).isFile()) return [slashed(relative(root, full))];
    // A whole tree is nobody's neighbour: "..", "src".
    if (candidate.split("/").length > 1 || candidate === "examples")
      return globSync("*.{ts,yaml,json}", { cwd: full }).map((one) => slashed(join(candidate, one)));
  }
  return [];
}

/** For a path from a folder that only the one who starts it knows. */
function endingWith(path: string): readonly string[] {
  const end = `/${path.replace(/^(?:\.{1,2}\/)+/, "").replace(/\.ts$/, "")}.ts`;
  return scripts().filter((file) => file.endsWith(end));
}

function scripts(): readonly string[] {
  scriptFiles ??= globSync("{test,chaos,demo,servers}/**/*.ts", { cwd: root }).map(slashed);
  return scriptFiles;
}

/** Line comments that begin a line, and blocks: what stands in a literal is left alone. */
function withoutComments(text: string): string {
  return text.replaceAll(/^\s*(\/\/.*|\/\*[\s\S]*?\*\/)/gm, "");
}

function slashed(path: string): string {
  return path.replaceAll("\\", "/");
}
