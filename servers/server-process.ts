/** A server program that belongs to this process: started by it, stopped by it, gone with it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { guard } from "./guard.ts";
import { halt } from "./halt.ts";

export interface ServerProgram {
  /** For people. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly logFile: string;
  /** Goes when this process does, in whatever way. */
  readonly privateFolder: string | undefined;
  /** Whom it runs as, if not as we do. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
}

const STOP_MS = 5_000;
const TAIL_LINES = 30;

export class ServerProcess {
  readonly #server: ServerProgram;
  #process: ChildProcess | undefined;

  constructor(server: ServerProgram) {
    this.#server = server;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error(`The ${this.#server.name} is not running.`);
    return pid;
  }

  launch(): void {
    const { program, args, logFile, privateFolder, owner } = this.#server;
    const log = openSync(logFile, "a");
    // In a session of its own: what Ctrl-C means for it is ours to say.
    const child = spawn(program, [...args], { detached: true, stdio: ["ignore", log, log], ...owner });
    closeSync(log);
    // Said below: there is no pid.
    child.once("error", () => undefined);
    if (child.pid === undefined) throw new Error(`${program} could not be started.`);
    const release = guard(child.pid, privateFolder);
    child.once("exit", () => {
      release();
      if (this.#process === child) this.#process = undefined;
    });
    // Somebody who forgot a server still ends, and the guard ends the server.
    child.unref();
    this.#process = child;
  }

  /** Resolves when it has ended. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    child.ref();
    const exited = once(child, "exit");
    child.kill(signal);
    // One that is paused hears of nothing but SIGKILL.
    child.kill("SIGCONT");
    const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(late);
  }

  /** Neither ended nor answering, its connections open: as a machine that hangs. */
  async pause(): Promise<void> {
    await halt(this.pid);
  }

  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** Over all of its starts. */
  wholeLog(): string {
    const { logFile } = this.#server;
    return existsSync(logFile) ? readFileSync(logFile, "utf8") : "";
  }

  /** The last lines. */
  log(): string {
    return this.wholeLog().trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
  }
}
