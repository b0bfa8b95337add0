import { after, before, describe } from "node:test";
import { type RedisServer, startRedisServer } from "../../servers/redis-server.ts";
import { testRegister } from "../locks/register-contract.ts";
import { openRedis } from "./handles.ts";

let server: RedisServer | undefined;
before(async () => {
  server = await startRedisServer();
});
after(() => server?.stop());

function running(): RedisServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

describe("the register of Redis", () => {
  testRegister({
    async open(context) {
      const engine = await openRedis(running().url);
      context.after(() => engine.close());
      return engine.register;
    },
    async restart() {
      await running().kill();
      await running().restart();
    },
    outlived: true,
    lateMs: 1_000,
  });
});
