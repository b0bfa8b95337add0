/** A NATS server with JetStream that belongs to this process: started by it, stopped by it, gone with it. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { findNatsServer, findOldNatsServer, type NatsBinary } from "./nats-binary.ts";
import { ask, ping, serverInfo } from "./nats-probe.ts";
import { PrivateServer } from "./private-server.ts";

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

export class NatsServer extends PrivateServer {
  readonly version: string;
  readonly port: number;
  readonly url: string;
  /** Tells it from a server of somebody else's on the same port. */
  readonly #name: string;
  /** How much it had logged before its last start. */
  #logged = 0;

  constructor({ program, version }: NatsBinary, port: number, { config, folder, sync }: NatsServerOptions) {
    const place = folder ?? mkdtempSync(join(tmpdir(), "baton-nats-"));
    mkdirSync(place, { recursive: true });
    const configuration = join(place, "nats.conf");
    super({
      name: "NATS server",
      program,
      args: ["-c", configuration],
      logFile: join(place, "nats.log"),
      folder: place,
      privateFolder: folder === undefined ? place : undefined,
    });
    this.version = version;
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    this.#name = `baton-${port}-${randomUUID().slice(0, 8)}`;
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

  override async restart(): Promise<void> {
    this.#logged = this.process.wholeLog().length;
    await super.restart();
  }

  async ready(): Promise<void> {
    const end = performance.now() + START_MS;
    for (;;) {
      const reason = await answers(this.port, this.#name).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (reason === undefined) return;
      if (!this.isRunning) {
        const message = `The NATS server ended:\n${this.log()}`;
        const taken = this.process.wholeLog().slice(this.#logged).includes("address already in use");
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
