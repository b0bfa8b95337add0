/** A Redis server that belongs to this process: started by it, stopped by it, gone with it. */
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { findRedisServer, type RedisBinary } from "./redis-binary.ts";
import { PrivateServer } from "./private-server.ts";

export interface RedisServerOptions {
  /** Settings beyond those below, or instead of them. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly port?: number;
  /** Which program; otherwise Redis's. */
  readonly binary?: RedisBinary;
}

const START_MS = 20_000;
const ANSWER_MS = 1_000;
const LOOK_EVERY_MS = 20;
const PORT_TRIES = 5;

export async function startRedisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  const binary = options.binary ?? (await findRedisServer());
  for (let tries = 1; ; tries += 1) {
    const server = new RedisServer(binary, options.port ?? (await freePort()), options.settings ?? {});
    try {
      await server.restart();
      return server;
    } catch (error) {
      await server.stop();
      const taken = error instanceof Error && error.message.includes("Address already in use");
      if (!taken || options.port !== undefined || tries === PORT_TRIES) throw error;
    }
  }
}

export class RedisServer extends PrivateServer {
  readonly version: string;
  readonly port: number;
  readonly url: string;

  constructor({ program, version, libraries }: RedisBinary, port: number, settings: Readonly<Record<string, string>>) {
    const folder = mkdtempSync(join(tmpdir(), "baton-redis-"));
    const all: Readonly<Record<string, string>> = {
      bind: "127.0.0.1",
      port: String(port),
      dir: folder,
      // Durable by the log alone. What is written to it is with the operating system when the reply is sent, so that a kill loses nothing, and
      // nobody waits for a disk. (With everysec it may wait in the server's memory while a sync runs, and a kill would lose it.)
      appendonly: "yes",
      appendfsync: "no",
      save: "",
      "maxmemory-policy": "noeviction",
      ...settings,
    };
    const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
    super({
      name: "Redis server",
      program: libraries === undefined ? program : "env",
      args: libraries === undefined ? args : [`LD_LIBRARY_PATH=${libraries}`, program, ...args],
      logFile: join(folder, "redis.log"),
      folder,
      privateFolder: folder,
    });
    this.version = version;
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
  }

  async ready(): Promise<void> {
    const end = performance.now() + START_MS;
    while (!(await this.#answers())) {
      if (!this.isRunning) throw new Error(`The Redis server ended:\n${this.log()}`);
      if (performance.now() > end)
        throw new Error(`The Redis server is not ready after ${START_MS} ms:\n${this.log()}`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** It has read its data, too: while it loads, it answers otherwise. */
  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(this.port, "127.0.0.1", () => socket.write("PING\r\n"));
      const end = (answer: boolean): void => {
        socket.destroy();
        resolve(answer);
      };
      socket.setTimeout(ANSWER_MS, () => end(false));
      // One that demands a password is as ready as one can tell from here.
      socket.once("data", (data) => end(/^(\+PONG|-NOAUTH)/.test(data.toString())));
      socket.once("error", () => end(false));
      socket.once("close", () => end(false));
    });
  }
}
