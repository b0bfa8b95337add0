import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, runTool, type ToolResult } from "./tool.ts";

/** Builds dist from nothing, so that no file of an earlier build is ever published. */
export function build(): ToolResult {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  const result = runTool("tsc", ["-p", "tsconfig.build.json"]);
  const command = join(root, "dist/cli/main.js");
  if (existsSync(command)) chmodSync(command, 0o755);
  return result;
}

if (import.meta.main) {
  const { ok, output } = build();
  process.stdout.write(output);
  process.exitCode = ok ? 0 : 1;
}
