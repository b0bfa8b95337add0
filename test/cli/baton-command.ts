/** Runs the real command on a real store in a folder of its own: from source, or as it was built a moment ago by `npm test`. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Baton, connect, type Queue } from "../../src/index.ts";
import { until } from "../kit/until.ts";

const ROOT = join(import.meta.dirname, "../..");
/** What is built starts sooner. `scripts/test.ts` sets the variable when its check has built it. */
export const MAIN: string = join(
  ROOT,
  process.env["BATON_TEST_BUILT"] === "yes" ? "dist/cli/main.js" : "src/cli/main.ts",
);

/** Type stripping takes most of the time of a command that runs from source. */
const CACHE = process.env["NODE_COMPILE_CACHE"] ?? join(tmpdir(), "baton-cli-compile-cache");

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  /** When the process and everybody who has its output has ended. */
  readonly finished: Promise<Finished>;
}

export interface RunOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArguments?: readonly string[];
}

/** A folder with a store. Whatever was started in it ends with the test. */
export class Desk {
  readonly folder: string = mkdtempSync(join(tmpdir(), "baton-cli-"));
  readonly #url: string;
  readonly #started = new Set<ChildProcess>();
  #baton: Promise<Baton> | undefined;

  /** Without a URL: a file in the folder. */
  constructor(test: TestContext, url?: string) {
    this.#url = url ?? `sqlite:${join(this.folder, "work.db")}?synchronous=off`;
    test.after(async () => {
      await (await this.#baton)?.close();
      for (const child of this.#started) {
        child.kill("SIGCONT");
        child.kill("SIGKILL");
        // An orphan that should not be there may hold the other ends: the test has failed then, and must not hang as well.
        for (const stream of child.stdio) stream?.destroy();
      }
      await until(
        () => [...this.#started].every(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null),
        "the end of every command",
      );
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    });
  }

  /** The same store through the library: to put things in place costs no process each. */
  async queue(name: string): Promise<Queue<string>> {
    return (await this.baton()).queue<string>(name);
  }

  baton(): Promise<Baton> {
    this.#baton ??= connect(this.#url);
    return this.#baton;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** What is in a file, or nothing. */
  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), "utf8") : "";
  }

  lines(name: string): string[] {
    return this.read(name)
      .split("\n")
      .filter((line) => line !== "");
  }

  bytes(name: string): Buffer {
    return readFileSync(this.path(name));
  }

  /** The files of the folder, without the store's own. */
  list(name = ""): string[] {
    return readdirSync(this.path(name)).filter((file) => !file.startsWith("work.db"));
  }

  write(name: string, text: string): string {
    writeFileSync(this.path(name), text);
    return this.path(name);
  }

  start(words: readonly string[], { input, env, nodeArguments = [] }: RunOptions = {}): Started {
    const child = spawn(process.execPath, [...nodeArguments, MAIN, ...words], {
      cwd: this.folder,
      env: { ...cleanEnvironment(), BATON_URL: this.#url, NODE_COMPILE_CACHE: CACHE, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#started.add(child);
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.stdin.on("error", () => undefined);
    child.stdin.end(input ?? "");
    const finished = new Promise<Finished>((resolve) =>
      child.once("close", (code, signal) => {
        this.#started.delete(child);
        resolve({ code, signal, stdout, stderr });
      }),
    );
    if (child.pid === undefined) throw new Error("The command could not be started.");
    return { child, pid: child.pid, finished };
  }

  run(words: readonly string[], options?: RunOptions): Promise<Finished> {
    return this.start(words, options).finished;
  }

  async json(words: readonly string[], options?: RunOptions): Promise<unknown> {
    const { stdout, stderr, code } = await this.run([...words, "--json"], options);
    if (code !== 0) throw new Error(`baton ${words.join(" ")} ended with ${String(code)}: ${stderr}`);
    return JSON.parse(stdout);
  }
}

/** What this process was started with must not decide what a command does. That a run is measured changes nothing. */
function cleanEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => (!name.startsWith("BATON_") && !name.startsWith("NODE_")) || name === "NODE_V8_COVERAGE",
    ),
  );
}

/** Whether a process can still do something. A zombie cannot, though it has its number yet. */
export function livesOn(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.trim().startsWith("Z");
}
