/** What the tests of the Redis engine share: a server, a folder for histories, and processes that use both. */
import type { TestContext } from "node:test";
import { createClient } from "@redis/client";
import { type RedisServer, type RedisServerOptions, startRedisServer } from "../../servers/redis-server.ts";
import { ServerDesk } from "../server-desk.ts";

export { Child, now, refusal } from "../server-desk.ts";

export class RedisDesk extends ServerDesk {
  readonly server: RedisServer;

  private constructor(context: TestContext, server: RedisServer) {
    super(context, server.url);
    this.server = server;
  }

  static async withServer(context: TestContext, options: RedisServerOptions = {}): Promise<RedisDesk> {
    const server = await startRedisServer(options);
    const desk = new RedisDesk(context, server);
    // After the desk has closed its connections: what was asked for first is done first.
    context.after(() => server.stop());
    return desk;
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
