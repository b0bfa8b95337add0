/** `npm run check` as a process of its own, beside the first tests. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root, type ToolResult } from "./tool.ts";

export class CheckBeside {
  /** Never rejects. Until then dist may be gone. */
  readonly result: Promise<ToolResult>;

  constructor() {
    const child = spawn(process.execPath, [join(root, "scripts/check.ts")], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    this.result = new Promise((resolve) => {
      child.once("error", ({ message }) => resolve({ ok: false, output: `The check did not start: ${message}` }));
      child.once("close", (code) => resolve({ ok: code === 0, output }));
    });
  }
}
