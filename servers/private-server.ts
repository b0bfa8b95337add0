/** What all servers of tests have in common: a process, a folder, and ways to hurt them. */
import { rmSync } from "node:fs";
import { ServerProcess, type ServerProgram } from "./server-process.ts";

export interface PrivateServerProgram extends ServerProgram {
  /** Where it keeps everything. It goes with the server if it is its private one. */
  readonly folder: string;
  /** Asks it to end. */
  readonly stopSignal?: NodeJS.Signals;
}

export abstract class PrivateServer implements AsyncDisposable {
  readonly folder: string;
  protected readonly process: ServerProcess;
  readonly #isPrivate: boolean;
  readonly #stopSignal: NodeJS.Signals;

  constructor({ folder, stopSignal = "SIGTERM", ...program }: PrivateServerProgram) {
    this.folder = folder;
    this.process = new ServerProcess(program);
    this.#isPrivate = program.privateFolder !== undefined;
    this.#stopSignal = stopSignal;
  }

  /** Resolves when it answers. */
  abstract ready(): Promise<void>;

  get isRunning(): boolean {
    return this.process.isRunning;
  }

  get pid(): number {
    return this.process.pid;
  }

  /** The last lines of its log, over all of its starts. */
  log(): string {
    return this.process.log();
  }

  /** At once, unless told otherwise. Resolves when it has ended; its folder stays. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.process.end(signal);
  }

  /** On the same port, with the same folder. Stops it first if it runs; resolves when it answers again. */
  async restart(): Promise<void> {
    await this.process.end(this.#stopSignal);
    this.process.launch();
    try {
      await this.ready();
    } catch (error) {
      await this.process.end("SIGKILL");
      throw error;
    }
  }

  /** Neither ended nor answering, its connections open: as a machine that hangs. */
  async pause(): Promise<void> {
    await this.process.pause();
  }

  resume(): void {
    this.process.resume();
  }

  /** For good: its folder goes too, unless it was given. */
  async stop(): Promise<void> {
    await this.process.end(this.#stopSignal);
    if (this.#isPrivate) rmSync(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
