/** A NATS server with JetStream that belongs to this process: started by it, stopped by it, gone with it. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { guard } from "./guard.ts";
import { findNatsServer, findOldNatsServer, type NatsBinary } from "./nats-binary.ts";
import { ask, ping, serverInfo } from "./nats-probe.ts";

export interface NatsServerOptions {
  /** "old": one that Baton refuses. */
  readonly version?: "new" | "old";
  /** "always": what is acknowledged is on the disk. The server's default is to sync every two minutes. */
  readonly sync?: "always" | "default";
  /** More text for its configuration. */
  readonly config?: string;
  readonly port?: number;
  /** Where it keeps everything. One that is given is not removed. */
  readonly folder?: string;
}

const START_MS = 20_000;
const STOP_MS = 5_000;
const LOOK_EVERY_MS = 20;
const TAIL_LINES = 30;
const PORT_TRIES = 5;

/** Somebody else was faster to take a port that had been free. */
export class PortTakenError extends Error {}

export async function startNatsServer(options: NatsServerOptions = {}): Promise<NatsServer> {
  const binary = await (options.version === "old" ? findOldNatsServer() : findNatsServer());
  for (let tries = 1; ; tries += 1) {
    const server = new NatsServer(binary, options.port ?? (await freePort()), options);
    try {
      await server.restart();
      return server;
    } catch (error) {
      await server.stop();
      if (!(error instanceof PortTakenError) || options.port !== undefined || tries === PORT_TRIES) throw error;
    }
  }
}

export class NatsServer implements AsyncDisposable {
  readonly version: string;
  readonly port: number;
  readonly url: string;
  readonly folder: string;
  /** Tells it from a server of somebody else's on the same port. */
  readonly #name: string;
  readonly #program: string;
  readonly #configuration: string;
  readonly #logFile: string;
  readonly #isPrivate: boolean;
  #process: ChildProcess | undefined;

  constructor({ program, version }: NatsBinary, port: number, { config, folder, sync }: NatsServerOptions) {
    this.#program = program;
    this.version = version;
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    this.#name = `baton-${port}-${randomUUID().slice(0, 8)}`;
    this.#isPrivate = folder === undefined;
    this.folder = folder ?? mkdtempSync(join(tmpdir(), "baton-nats-"));
    mkdirSync(this.folder, { recursive: true });
    this.#configuration = join(this.folder, "nats.conf");
    this.#logFile = join(this.folder, "nats.log");
    const lines = [
      `listen: "127.0.0.1:${port}"`,
      `server_name: "${this.#name}"`,
      "jetstream {",
      `  store_dir: ${JSON.stringify(join(this.folder, "data"))}`,
      ...(sync === "always" ? ["  sync_interval: always"] : []),
      "}",
      config ?? "",
    ];
    writeFileSync(this.#configuration, `${lines.join("\n")}\n`);
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error("The NATS server is not running.");
    return pid;
  }

  /** The last lines of its log, over all of its starts. */
  log(): string {
    return this.#wholeLog().trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
  }

  /** At once, unless told otherwise. Resolves when it has ended; its folder stays. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#end(signal);
  }

  /** On the same port, with the same folder. Stops it first if it runs; resolves when it answers again. */
  async restart(): Promise<void> {
    await this.#end("SIGTERM");
    const logged = this.#wholeLog().length;
    this.#launch();
    try {
      await this.#answers(logged);
    } catch (error) {
      await this.#end("SIGKILL");
      throw error;
    }
  }

  /** Neither ended nor answering, its connections open: as a machine that hangs. */
  pause(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** For good: its folder goes too, unless it was given. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    if (this.#isPrivate) rmSync(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #launch(): void {
    const log = openSync(this.#logFile, "a");
    // In a session of its own: what Ctrl-C means for it is ours to say.
    const child = spawn(this.#program, ["-c", this.#configuration], { detached: true, stdio: ["ignore", log, log] });
    closeSync(log);
    // Said below: there is no pid.
    child.once("error", () => undefined);
    if (child.pid === undefined) throw new Error(`${this.#program} could not be started.`);
    const release = guard(child.pid, this.#isPrivate ? this.folder : undefined);
    child.once("exit", () => {
      release();
      if (this.#process === child) this.#process = undefined;
    });
    // Somebody who forgot a server still ends, and the guard ends the server.
    child.unref();
    this.#process = child;
  }

  async #answers(logged: number): Promise<void> {
    const end = performance.now() + START_MS;
    for (;;) {
      const reason = await answers(this.port, this.#name).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (reason === undefined) return;
      if (!this.isRunning) {
        const message = `The NATS server ended:\n${this.log()}`;
        const taken = this.#wholeLog().slice(logged).includes("address already in use");
        throw taken ? new PortTakenError(message) : new Error(message);
      }
      if (performance.now() > end) {
        throw new Error(`The NATS server is not ready after ${START_MS} ms:\n${this.log()}`, { cause: reason });
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
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

  #wholeLog(): string {
    return existsSync(this.#logFile) ? readFileSync(this.#logFile, "utf8") : "";
  }
}

async function answers(port: number, name: string): Promise<void> {
  const info = await serverInfo(port);
  if (info.server_name !== name) throw new Error(`Another server answers on port ${port}.`);
  // We hold no key to it; that it demands one is answer enough.
  if (info.auth_required === true || info.tls_required === true) return;
  await ping(port);
  // Whether JetStream works in a cluster is not for one server to say.
  if (info.cluster === undefined) await ask(port, "$JS.API.INFO");
}
