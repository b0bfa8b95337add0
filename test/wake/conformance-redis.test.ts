import { startRedisServer } from "../../servers/redis-server.ts";
import { openRedisWakeUrl } from "../../src/engines/redis/index.ts";
import { addWakeTests } from "./add-wake-tests.ts";
import { started } from "../started.ts";

const running = started(() => startRedisServer());

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
