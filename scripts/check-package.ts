import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { root, runTool, type ToolResult } from "./tool.ts";

const CACHE = join(root, ".cache/package");

/** Packs once, and has both judges look at the very file that would be published. */
export function checkPackage(): ToolResult {
  rmSync(CACHE, { recursive: true, force: true });
  mkdirSync(CACHE, { recursive: true });
  // Without scripts: dist was built a moment ago.
  const packed = runTool("npm", ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", CACHE]);
  if (!packed.ok) return packed;
  const file = join(CACHE, `${manifest.name}-${manifest.version}.tgz`);
  const lint = runTool("publint", ["run", file, "--strict"]);
  if (!lint.ok) return lint;
  return runTool("attw", [file, "--profile", "esm-only", "--no-definitely-typed"]);
}
