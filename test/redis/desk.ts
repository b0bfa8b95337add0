/** What the tests of the Redis engine share: a server, a folder for histories, and processes that use both. */
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createClient } from "@redis/client";
import { type RedisServer, type RedisServerOptions, startRedisServer } from "../../servers/redis-server.ts";
import { type Child, Desk } from "../sqlite/desk.ts";

export { Child, now, refusal } from "../sqlite/desk.ts";

const LOOK_MS = 20;
const SQLITE_WORKER = "../black-box/worker";
/** Servers can be away when a process begins; a file cannot. */
const PATIENT_WORKER = "../../nats/children/worker";

/** The same folder and processes as those of SQLite, in front of another store. */
export class RedisDesk extends Desk {
  readonly server: RedisServer;

  private constructor(context: TestContext, server: RedisServer) {
    super(context);
    this.server = server;
  }

  static async withServer(context: TestContext, options: RedisServerOptions = {}): Promise<RedisDesk> {
    const server = await startRedisServer(options);
    const desk = new RedisDesk(context, server);
    // After the desk has closed its connections: what was asked for first is done first.
    context.after(() => server.stop());
    return desk;
  }

  override get url(): string {
    return this.server.url;
  }

  override start(script: string, ...args: readonly string[]): Child {
    return super.start(script === SQLITE_WORKER ? PATIENT_WORKER : script, ...args);
  }

  /** One command, on a connection of its own. */
  async command(...args: readonly string[]): Promise<unknown> {
    const client = createClient({ url: this.url });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return await client.sendCommand(args);
    } finally {
      client.destroy();
    }
  }
}

/** Waits for what must come, and says what it waited for if it does not. */
export async function until(what: string, withinMs: number, look: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`Within ${withinMs} ms there was not: ${what}`);
    await wait(LOOK_MS);
  }
}
