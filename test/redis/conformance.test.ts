import { after, before, describe, test } from "node:test";
import { type RedisServer, startRedisServer } from "../../servers/redis-server.ts";
import { cases, type ConformanceTarget, runCase } from "../../src/conformance/index.ts";
import { redisEngine } from "../../src/engines/redis/index.ts";

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

describe("the Redis engine conforms", { concurrency: 8 }, () => {
  for (const one of cases.filter(({ alone, needsRestart }) => !alone && !needsRestart)) addTest(one);
});

describe("the Redis engine conforms when it is alone", { concurrency: 1 }, () => {
  for (const one of cases.filter(({ alone, needsRestart }) => alone || needsRestart)) addTest(one);
});

function addTest(one: (typeof cases)[number]): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
