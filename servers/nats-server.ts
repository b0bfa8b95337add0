/** A NATS server with JetStream that belongs to this process: started by it, stopped by it, gone with it. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { findNatsServer, findOldNatsServer, type NatsBinary } from "./nats-binary.ts";
import { ask, ping, serverInfo } from "./nats-probe.ts";
import { ServerProcess } from "./server-process.ts";

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
const LOOK_EVERY_MS = 20;
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
  readonly #isPrivate: boolean;
  readonly #process: ServerProcess;

  constructor({ program, version }: NatsBinary, port: number, { config, folder, sync }: NatsServerOptions) {
    this.version = version;
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    this.#name = `baton-${port}-${randomUUID().slice(0, 8)}`;
    this.#isPrivate = folder === undefined;
    this.folder = folder ?? mkdtempSync(join(tmpdir(), "baton-nats-"));
    mkdirSync(this.folder, { recursive: true });
    const configuration = join(this.folder, "nats.conf");
    this.#process = new ServerProcess({
      name: "NATS server",
      program,
      args: ["-c", configuration],
      logFile: join(this.folder, "nats.log"),
      privateFolder: this.#isPrivate ? this.folder : undefined,
    });
    const lines = [
      `listen: "127.0.0.1:${port}"`,
      `server_name: "${this.#name}"`,
      "jetstream {",
      `  store_dir: ${JSON.stringify(join(this.folder, "data"))}`,
      ...(sync === "always" ? ["  sync_interval: always"] : []),
      "}",
      config ?? "",
    ];
    writeFileSync(configuration, `${lines.join("\n")}\n`);
  }

  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** The last lines of its log, over all of its starts. */
  log(): string {
    return this.#process.log();
  }

  /** At once, unless told otherwise. Resolves when it has ended; its folder stays. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#process.end(signal);
  }

  /** On the same port, with the same folder. Stops it first if it runs; resolves when it answers again. */
  async restart(): Promise<void> {
    await this.#process.end("SIGTERM");
    const logged = this.#process.wholeLog().length;
    this.#process.launch();
    try {
      await this.#answers(logged);
    } catch (error) {
      await this.#process.end("SIGKILL");
      throw error;
    }
  }

  /** Neither ended nor answering, its connections open: as a machine that hangs. */
  pause(): void {
    this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /** For good: its folder goes too, unless it was given. */
  async stop(): Promise<void> {
    await this.#process.end("SIGTERM");
    if (this.#isPrivate) rmSync(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
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
        const taken = this.#process.wholeLog().slice(logged).includes("address already in use");
        throw taken ? new PortTakenError(message) : new Error(message);
      }
      if (performance.now() > end) {
        throw new Error(`The NATS server is not ready after ${START_MS} ms:\n${this.log()}`, { cause: reason });
      }
      await sleep(LOOK_EVERY_MS);
    }
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
