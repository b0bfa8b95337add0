/** Runs one test file in a copy of the tree, and ends it with all its processes at the first failure. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Coverage, readCoverage } from "./coverage.ts";
import { FAILED } from "./first-failure.ts";
import type { Workspace } from "./workspace.ts";

const REPORTER = join(import.meta.dirname, "first-failure.ts");

export interface TestRun {
  readonly ms: number;
  /** The name of the test that failed, or what else went wrong. Undefined: all is well. */
  readonly failure: string | undefined;
  /** It was ended because it took too long. */
  readonly isLate: boolean;
}

/** Process groups that run now. An interrupted program takes them along. */
const running = new Set<number>();

export function endAll(): void {
  for (const pid of running) endGroup(pid);
}

export async function runTest(
  { root, temporary }: Workspace,
  file: string,
  limitMs: number,
  environment: NodeJS.ProcessEnv = {},
): Promise<TestRun> {
  const startedAt = performance.now();
  const args = [`--test-reporter=${REPORTER}`, "--test-reporter-destination=stdout", file];
  const child = spawn(process.execPath, args, {
    cwd: root,
    // A group of its own: what the test has started ends with it. Servers have guards.
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env: environmentFor(root, temporary, environment),
  });
  const { pid } = child;
  if (pid !== undefined) running.add(pid);
  const ended = Promise.withResolvers<string | undefined>();
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    const failed = said.split("\n").find((line, index, lines) => index < lines.length - 1 && line.startsWith(FAILED));
    if (failed !== undefined) ended.resolve(failed.slice(FAILED.length));
  });
  child.once("error", ended.reject);
  child.once("close", (code, signal) => ended.resolve(code === 0 ? undefined : `ended by ${signal ?? String(code)}`));
  let isLate = false;
  const clock = setTimeout(() => {
    isLate = true;
    ended.resolve(`no end within ${(limitMs / 1_000).toFixed(0)} s`);
  }, limitMs);
  try {
    const failure = await ended.promise;
    return { ms: performance.now() - startedAt, failure, isLate };
  } finally {
    clearTimeout(clock);
    if (pid !== undefined) {
      endGroup(pid);
      running.delete(pid);
    }
  }
}

/** Without a flaw: how long it takes, and what of the sources it runs. */
export async function runCovered(
  workspace: Workspace,
  file: string,
  limitMs: number,
): Promise<TestRun & { readonly coverage: Coverage }> {
  const folder = join(workspace.temporary, "coverage");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o777 });
  const run = await runTest(workspace, file, limitMs, { NODE_V8_COVERAGE: folder });
  return { ...run, coverage: readCoverage(folder, workspace.root) };
}

function environmentFor(root: string, temporary: string, own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const bin = join(root, "node_modules/.bin");
  const path = process.env["PATH"] ?? "";
  const environment: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: existsSync(bin) ? `${bin}${delimiter}${path}` : path,
    TMPDIR: temporary,
    ...own,
  };
  // The tests of this program run inside a test run; those that it starts do not report to it.
  delete environment["NODE_TEST_CONTEXT"];
  return environment;
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended by themselves.
  }
}
