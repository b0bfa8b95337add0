/**
 * Where tests stand, as CONTRIBUTING says it: a test of one module beside it, under its name; all others in a folder or file
 * named after their subject, under test or chaos. A test that stands elsewhere would never run.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { root } from "./tool.ts";

const ELSEWHERE = ["**/node_modules/**", "dist/**", ".cache/**", "src/**", "test/**", "chaos/**"];
/** The one way to wait for what nobody tells of. */
const WAITS = /\bfunction until\b/;
const UNTIL = "test/kit/until.ts";

export function testProblems(): readonly string[] {
  return [
    ...named("**/*.test.ts", ELSEWHERE).map(
      (file) => `${file}: no command runs tests here; they stand in src, test or chaos`,
    ),
    ...named("src/**/*.test.ts")
      .filter((file) => !standsBesideItsSource(file))
      .map((file) => `${file}: named after no module beside it; a test of several parts stands in test/<subject>`),
    ...named("{test,chaos}/**/*.ts")
      .filter((file) => file !== UNTIL && WAITS.test(readFileSync(join(root, file), "utf8")))
      .map((file) => `${file}: waits in its own way; ${UNTIL} is there for all`),
  ];
}

function named(pattern: string, exclude: readonly string[] = []): readonly string[] {
  return globSync(pattern, { cwd: root, exclude: [...exclude] }).toSorted();
}

/** `worker-loop-stop.test.ts` is about `worker-loop.ts`, too. */
function standsBesideItsSource(file: string): boolean {
  const name = basename(file, ".test.ts");
  return globSync("*.ts", { cwd: join(root, dirname(file)) })
    .filter((one) => !one.endsWith(".test.ts"))
    .some((one) => name === basename(one, ".ts") || name.startsWith(`${basename(one, ".ts")}-`));
}
