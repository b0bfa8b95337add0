import { Wire } from "../../src/engines/redis/client.ts";
import { openClient } from "../../src/engines/redis/connection.ts";
import { RedisEngine } from "../../src/engines/redis/engine.ts";

/** The engine itself, for tests that look behind the port. */
export async function openRedis(url: string, prefix = "baton"): Promise<RedisEngine> {
  return new RedisEngine({ wire: new Wire(await openClient({ url }), true), prefix });
}
