import { after, before } from "node:test";
import { type RedisServer, startRedisServer } from "../../servers/redis-server.ts";
import type { ConformanceTarget } from "../../src/conformance/index.ts";
import { redisEngine } from "../../src/engines/redis/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";

let server: RedisServer | undefined;
before(async () => {
  server = await startRedisServer();
});
after(() => server?.stop());

const target: ConformanceTarget = {
  name: "redis",
  open: () => redisEngine({ url: running().url }),
  async restart() {
    await running().kill();
    await running().restart();
  },
};

function running(): RedisServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

addEngineTests("the Redis engine", target);
