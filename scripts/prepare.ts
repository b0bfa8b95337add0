/**
 * What npm runs after `npm ci` in a clone, before it packs, and when somebody installs from git: builds dist. It is the script `dependencies`
 * and `prepack`, not `prepare`: of that one npm warns everybody who installs the packed file, though it does nothing there.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.ts";
import { linkBaton } from "./link-baton.ts";
import { root } from "./tool.ts";

// An image may install the dependencies in a layer of their own, before it has the sources.
if (existsSync(join(root, "src/index.ts"))) {
  const { ok, output } = build();
  process.stdout.write(output);
  if (!ok) process.exitCode = 1;
}
linkBaton();
