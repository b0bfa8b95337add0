/**
 * Import direction: every folder of src may import itself and the folders named here, nothing else of ours. Written by
 * hand because the tools that do this cannot read `await using` or TypeScript 7; the formatter keeps imports in the
 * one shape that is looked for here.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";

/** Most basic last; "root" is src/index.ts. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  cli: ["root", "relay"],
  relay: ["root", "domain"],
  conformance: ["relay", "engine", "locks", "wake", "domain"],
  root: ["client", "worker", "engine", "locks", "wake", "domain"],
  client: ["worker", "engine", "locks", "wake", "domain"],
  worker: ["engine", "domain"],
  engines: ["engine", "locks", "wake", "domain"],
  engine: ["locks", "domain"],
  consul: ["engine", "locks", "domain"],
  locks: ["domain"],
  wake: ["domain"],
  domain: [],
};

interface Import {
  readonly from: string;
  /** A file of ours, or the name of a package. */
  readonly to: string;
  readonly lazy: boolean;
}

const STATEMENT = /^(?:import|export)\b[^;]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;

export function importProblems(): readonly string[] {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => join("src", file));
  const imports = files.flatMap(importsOf);
  return [...imports.flatMap(problemsOf), ...cycles(files, imports)];
}

function importsOf(from: string): readonly Import[] {
  return [...readFileSync(from, "utf8").matchAll(STATEMENT)].map(([, named, bare, lazy]) => {
    const written = named ?? bare ?? lazy ?? "";
    const to = written.startsWith(".") ? normalize(join(dirname(from), written)) : written;
    return { from, to, lazy: lazy !== undefined };
  });
}

function problemsOf({ from, to, lazy }: Import): readonly string[] {
  const layer = layerOf(from);
  const below = LAYERS[layer];
  if (below === undefined) return [`${from}: a new folder of src needs its place in scripts/check-imports.ts`];
  if (!to.startsWith(`src${sep}`)) {
    return layer === "domain"
      ? [`${from}: imports ${to}; the domain runs in a simulation and needs no module but its own`]
      : [];
  }
  const target = layerOf(to);
  if (target === "engines" && layer === "engines" && engineOf(from) !== engineOf(to))
    return [`${from}: imports another engine, ${to}`];
  if ((target === "engines" || target === "consul") && layer === "client") {
    return lazy ? [] : [`${from}: imports ${to} statically; every driver would be loaded with the root`];
  }
  return target === layer || below.includes(target)
    ? []
    : [`${from}: imports ${to}; ${layer} may import only ${below.join(", ")}`];
}

/** Two modules that need each other are one, or a third is missing. Types count. */
function cycles(files: readonly string[], imports: readonly Import[]): readonly string[] {
  const done = new Set<string>();
  const problems: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      problems.push(`a cycle: ${[...path.slice(path.indexOf(file)), file].join(" → ")}`);
      return;
    }
    if (done.has(file)) return;
    for (const { from, to, lazy } of imports) if (from === file && !lazy) visit(to, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  return problems;
}

function layerOf(file: string): string {
  const [, folder = "", ...rest] = file.split(sep);
  return rest.length === 0 ? "root" : folder;
}

function engineOf(file: string): string {
  return file.split(sep)[2] ?? "";
}
