import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";

export const root: string = join(import.meta.dirname, "..");

const bin = join(root, "node_modules/.bin");

export interface ToolResult {
  readonly ok: boolean;
  readonly output: string;
}

/** Runs a program in the root of the repository, with the tools and the Node of node_modules before those of the system. */
export function runTool(name: string, args: readonly string[] = []): ToolResult {
  const result = spawnSync(name, args, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` },
  });
  if (result.error !== undefined) return { ok: false, output: `${name} did not start: ${result.error.message}\n` };
  return { ok: result.status === 0, output: result.stdout + result.stderr };
}
