/** The Redis engine on Valkey: everything that it promises, on the other server that it is promised for. */
import { test } from "node:test";
import { findValkeyServer } from "../../servers/redis-binary.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { cases, type ConformanceTarget } from "../../src/conformance/index.ts";
import { redisEngine } from "../../src/engines/redis/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { draw } from "../kit/draw.ts";
import { started } from "../started.ts";

const found = await findValkeyServer().catch((error: unknown) => String(error));

if (typeof found === "string") {
  // Redis itself is required, and its tests fail without it. Not every release of Debian has Valkey.
  const skip = `There is no Valkey here: ${found}. Install valkey-server, or set BATON_TEST_REDIS_SERVER to it and run the tests of Redis.`;
  test("the Redis engine on Valkey", { skip }, () => undefined);
} else {
  const running = started(() => startRedisServer({ binary: found }));
  const target: ConformanceTarget = {
    name: "redis",
    open: () => redisEngine({ url: running().url }),
    async restart() {
      await running().kill();
      await running().restart();
    },
  };
  addEngineTests(`the Redis engine on Valkey ${found.version}`, target, draw.cases("Valkey", cases));
}
