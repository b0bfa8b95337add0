import { startRedisServer } from "../../../servers/redis-server.ts";
import { openRedis } from "../../redis/handles.ts";
import { Seeds } from "../../kit/seeds.ts";
import { addStoreTests, type RunningStore } from "./add-store-tests.ts";

const start = async (): Promise<RunningStore> => {
  const server = await startRedisServer();
  return {
    connect: () => openRedis(server.url),
    stop: () => server.stop(),
  };
};

addStoreTests("locks on Redis", start, () => new Seeds({ seeds: 40, longestMs: 4_000 }));
