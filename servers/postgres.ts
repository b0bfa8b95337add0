/** A PostgreSQL server that belongs to this process: started by it, stopped by it, gone with it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type QueryResult } from "pg";
import { freePort } from "./free-port.ts";
import { halt } from "./halt.ts";
import { copyEmptyData, newFolder, USER } from "./postgres-data.ts";
import { findPostgres, type Owner, postgresOwner } from "./postgres-programs.ts";
import { PrivateServer } from "./private-server.ts";

export interface PostgresServerOptions {
  /** More settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

const START_MS = 30_000;
const LOOK_EVERY_MS = 50;

export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const programs = await findPostgres();
  const owner = postgresOwner();
  const folder = newFolder(owner);
  await copyEmptyData(programs, owner, join(folder, "data"));
  const server = new PostgresServer(programs, folder, await freePort(), owner, options);
  try {
    await server.restart();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

export class PostgresServer extends PrivateServer {
  readonly port: number;
  /** Of the database `postgres`. */
  readonly url: string;
  #databases = 0;

  constructor(
    programs: string,
    folder: string,
    port: number,
    owner: Owner | undefined,
    { settings = {} }: PostgresServerOptions,
  ) {
    const all = {
      listen_addresses: "127.0.0.1",
      port: String(port),
      unix_socket_directories: "",
      max_connections: "300",
      // In its folder: in the system's memory it would outlive a server that is killed.
      dynamic_shared_memory_type: "mmap",
      ...settings,
    };
    super({
      name: "PostgreSQL server",
      program: join(programs, "postgres"),
      args: ["-D", join(folder, "data"), ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
      logFile: join(folder, "postgres.log"),
      folder,
      privateFolder: folder,
      owner,
      // Its fast shutdown.
      stopSignal: "SIGINT",
    });
    this.port = port;
    this.url = this.urlOf("postgres");
  }

  urlOf(database: string): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/${database}`;
  }

  /** The URL of a database of its own. */
  async newDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `test_${this.#databases}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.urlOf(name);
  }

  async query(text: string, url: string = this.url): Promise<QueryResult<Record<string, unknown>>> {
    const client = new Client(url);
    await client.connect();
    try {
      return await client.query<Record<string, unknown>>(text);
    } finally {
      await client.end();
    }
  }

  /** With every process of it, as when its machine fails: those that serve connections would go on for a moment without their parent. */
  override async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const children = signal === "SIGKILL" ? this.#children() : [];
    const ended = super.kill(signal);
    signalAll(children, signal);
    await ended;
  }

  override async pause(): Promise<void> {
    await super.pause();
    await Promise.all(this.#children().map(halt));
  }

  override resume(): void {
    signalAll(this.#children(), "SIGCONT");
    super.resume();
  }

  /** Where the system tells them. */
  #children(): readonly number[] {
    const file = this.isRunning ? `/proc/${this.pid}/task/${this.pid}/children` : "";
    return existsSync(file) ? readFileSync(file, "utf8").trim().split(" ").filter(Boolean).map(Number) : [];
  }

  async ready(): Promise<void> {
    const end = performance.now() + START_MS;
    for (;;) {
      // One whose parent was killed holds on to its memory until its children have noticed; then it ends at once, and is started again.
      if (!this.isRunning) this.process.launch();
      const reason = await this.query("SELECT 1").then(
        () => undefined,
        (error: unknown) => error,
      );
      if (reason === undefined) return;
      if (performance.now() > end)
        throw new Error(`The PostgreSQL server is not ready after ${START_MS} ms:\n${this.log()}`, { cause: reason });
      await sleep(LOOK_EVERY_MS);
    }
  }
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended by itself.
    }
  }
}
