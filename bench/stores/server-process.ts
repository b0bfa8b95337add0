import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A server that has not begun to serve by then never will. */
const START_MS = 15_000;
const STOP_MS = 10_000;
const LOOK_EVERY_MS = 20;
const ENOUGH_OF_OUTPUT = 2_000;

const living = new Set<{ readonly kill: (signal: NodeJS.Signals) => unknown }>();

/** A server that belongs to this run: started by it, stopped by it. */
export class ServerProcess {
  readonly #process: ChildProcess;
  readonly #name: string;
  #output = "";
  #failed: Error | undefined;

  constructor(program: string, args: readonly string[], options: SpawnOptions = {}) {
    this.#name = program.split("/").at(-1) ?? program;
    this.#process = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    living.add(this.#process);
    this.#process.on("exit", () => living.delete(this.#process));
    this.#process.on("error", (error) => {
      this.#failed = error;
    });
    const keep = (data: Buffer): void => {
      this.#output = (this.#output + data.toString()).slice(-ENOUGH_OF_OUTPUT);
    };
    this.#process.stdout?.on("data", keep);
    this.#process.stderr?.on("data", keep);
  }

  async until(ready: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + START_MS;
    while (!(await ready())) {
      if (this.#failed !== undefined) throw this.#failed;
      if (this.#gone) throw new Error(`${this.#name} ended: ${this.#output.trim()}`);
      if (performance.now() > end) throw new Error(`${this.#name} does not answer: ${this.#output.trim()}`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  memory(): number {
    const { pid } = this.#process;
    return pid === undefined ? 0 : memoryOf(pid);
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.#gone) return;
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill(signal);
    const late = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(late);
  }

  get #gone(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null || this.#failed !== undefined;
  }
}

/** For the way out: asks every server to stop, without waiting for it. */
export function signalServers(): void {
  for (const server of living) server.kill("SIGINT");
}

/** A server that somebody else started for this run ends with it too. Returns what forgets it. */
export function signalToo(server: { readonly kill: (signal: NodeJS.Signals) => unknown }): () => void {
  living.add(server);
  return () => {
    living.delete(server);
  };
}

/** What a process and those it started hold, in MiB; what they share is counted once. */
export function memoryOf(pid: number): number {
  return familyOf(pid).reduce((sum, one) => sum + shareOfMemory(one), 0) / 1_024;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("There is no free port.");
  return address.port;
}

function familyOf(pid: number): number[] {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((one) => parentOf(one) === pid);
  return [pid, ...children.flatMap(familyOf)];
}

function parentOf(pid: number): number | undefined {
  // The name in parentheses may hold spaces: the parent is the second field after it.
  const fields = read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ");
  return fields?.[1] === undefined ? undefined : Number(fields[1]);
}

/** In KiB. */
function shareOfMemory(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
}

/** A process may end between listing and looking. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
