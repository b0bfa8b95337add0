import { buildSync } from "esbuild";
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, runTool, type ToolResult } from "./tool.ts";

/** Builds dist from nothing, so that no file of an earlier build is ever published. */
export function build(): ToolResult {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  const result = runTool("tsc", ["-p", "tsconfig.build.json"]);
  if (result.ok) writeThreadProgram();
  const command = join(root, "dist/cli/main.js");
  if (existsSync(command)) chmodSync(command, 0o755);
  return result;
}

/** What runs in a thread of its own must be found in a bundle too, in which there are no files: so it is a text. */
function writeThreadProgram(): void {
  const { outputFiles } = buildSync({
    entryPoints: [join(root, "dist/engines/sqlite/thread.js")],
    bundle: true,
    platform: "node",
    target: "node24",
    // What a thread is given as text runs as CommonJS.
    format: "cjs",
    write: false,
  });
  const [program] = outputFiles;
  if (program === undefined) throw new Error("esbuild made no program of the thread.");
  // It shows up in stack traces by this name.
  const text = `${program.text}//# sourceURL=baton-sqlite-thread.cjs\n`;
  writeFileSync(
    join(root, "dist/engines/sqlite/thread-program.js"),
    `export const THREAD_PROGRAM = ${JSON.stringify(text)};\n`,
  );
}

if (import.meta.main) {
  const { ok, output } = build();
  process.stdout.write(output);
  process.exitCode = ok ? 0 : 1;
}
