import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { root, runTool, type ToolResult } from "./tool.ts";

const CACHE = join(root, ".cache/package");

/** npm runs these where a package is installed, or asks whether it may. What a clone needs stands under `dependencies` and `prepack`. */
const AT_INSTALL = ["preinstall", "install", "postinstall", "prepare"];

/** Packs once, and has both judges look at the very file that would be published. */
export function checkPackage(): ToolResult {
  const scripts = AT_INSTALL.filter((name) => name in manifest.scripts);
  if (scripts.length > 0)
    return {
      ok: false,
      output: `npm warns everybody who installs a package with these scripts: ${scripts.join(", ")}.\n`,
    };
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
