import { startRedisServer } from "../../servers/redis-server.ts";
import type { ConformanceTarget } from "../../src/conformance/index.ts";
import { redisEngine } from "../../src/engines/redis/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { started } from "../started.ts";

const running = started(() => startRedisServer());

const target: ConformanceTarget = {
  name: "redis",
  open: () => redisEngine({ url: running().url }),
  async restart() {
    await running().kill();
    await running().restart();
  },
};

addEngineTests("the Redis engine", target);
