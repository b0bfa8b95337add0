/** Everything that can be judged without running Baton. One line when all is well; otherwise the first failure, in full. */
import { build } from "./build.ts";
import { docProblems } from "./check-docs.ts";
import { exportProblems } from "./check-exports.ts";
import { importProblems } from "./check-imports.ts";
import { checkPackage } from "./check-package.ts";
import { testProblems } from "./check-tests.ts";
import { runTool, type ToolResult } from "./tool.ts";

interface Step {
  readonly name: string;
  readonly run: () => ToolResult;
  /** What puts it right, where a command does. */
  readonly remedy?: string;
}

const STEPS: readonly Step[] = [
  { name: "format", run: () => runTool("oxfmt", ["--list-different"]), remedy: "npm run format" },
  { name: "lint", run: () => runTool("oxlint") },
  { name: "types", run: () => runTool("tsc") },
  { name: "import direction", run: () => resultOf(importProblems()) },
  { name: "tests", run: () => resultOf(testProblems()) },
  { name: "build", run: build },
  { name: "exports", run: () => resultOf(exportProblems()) },
  { name: "documentation", run: () => resultOf(docProblems()) },
  { name: "package", run: checkPackage },
];

function resultOf(problems: readonly string[]): ToolResult {
  return { ok: problems.length === 0, output: problems.map((problem) => `${problem}\n`).join("") };
}

const started = performance.now();
let failed: Step | undefined;
for (const step of STEPS) {
  const { ok, output } = step.run();
  if (!ok) {
    failed = step;
    process.stderr.write(output);
    break;
  }
}
const seconds = ((performance.now() - started) / 1_000).toFixed(1);
if (failed === undefined) {
  console.log(`check: ${STEPS.map((step) => step.name).join(", ")}: all good in ${seconds} s`);
} else {
  const remedy = failed.remedy === undefined ? "" : ` Run "${failed.remedy}".`;
  console.error(`check: ${failed.name} failed.${remedy}`);
  process.exitCode = 1;
}
