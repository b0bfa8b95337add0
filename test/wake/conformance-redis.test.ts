import { after, before } from "node:test";
import { type RedisServer, startRedisServer } from "../../servers/redis-server.ts";
import { openRedisWakeUrl } from "../../src/engines/redis/index.ts";
import { addWakeTests } from "./add-wake-tests.ts";

let server: RedisServer | undefined;

before(async () => {
  server = await startRedisServer();
});
after(() => server?.stop());

function running(): RedisServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

addWakeTests({
  name: "Redis",
  open: async () => openRedisWakeUrl(running().url),
  hints: true,
  async interrupt() {
    await running().kill();
    await running().restart();
  },
  age: "It takes a minute; that budgets expire is read by another test.",
});
