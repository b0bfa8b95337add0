/** The Redis engine with its wake-ups carried by a real NATS server. */
import { after, before } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { type RedisServer, startRedisServer } from "../../servers/redis-server.ts";
import { openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import { openRedisUrl } from "../../src/engines/redis/index.ts";
import { Wake } from "../../src/wake/wake.ts";
import { addWaitedTests } from "./add-waited-tests.ts";

let nats: NatsServer | undefined;
let redis: RedisServer | undefined;

before(async () => {
  [nats, redis] = await Promise.all([startNatsServer(), startRedisServer()]);
});
after(async () => {
  await Promise.all([nats?.stop(), redis?.stop()]);
});

addWaitedTests("Redis with wakes over NATS", {
  name: "the Redis engine with wakes over NATS",
  open: () => openRedisUrl(redis?.url ?? "", new Wake(openNatsWakeUrl(nats?.url ?? "nats://"))),
  restart: "Restarts are the business of the engine's own suite.",
  leaseMs: 1_000,
});
