import { describe } from "node:test";
import { startRedisServer } from "../../servers/redis-server.ts";
import { testRegister } from "../locks/register-contract.ts";
import { openRedis } from "./handles.ts";
import { started } from "../started.ts";

const running = started(() => startRedisServer());

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
