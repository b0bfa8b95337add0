/** Three Redis servers that share the slots of a cluster, without replicas. */
import { createClient } from "@redis/client";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

const SERVERS = 3;
const SLOTS = 16_384;
const READY_MS = 20_000;
const LOOK_EVERY_MS = 50;

export interface RedisCluster extends AsyncDisposable {
  readonly servers: readonly RedisServer[];
  stop(): Promise<void>;
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const servers: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (let index = 0; index < SERVERS; index += 1) {
      const settings = { "cluster-enabled": "yes", "cluster-port": String(await freePort()), appendfsync: "everysec" };
      servers.push(await startRedisServer({ settings }));
    }
    await join(servers);
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, stop, [Symbol.asyncDispose]: stop };
}

export async function commandOf(server: RedisServer, ...args: readonly string[]): Promise<unknown> {
  const client = createClient({ url: server.url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await client.sendCommand(args);
  } finally {
    client.destroy();
  }
}

async function join(servers: readonly RedisServer[]): Promise<void> {
  const [first] = servers;
  for (const [index, server] of servers.entries()) {
    const from = Math.floor((index * SLOTS) / servers.length);
    const to = Math.floor(((index + 1) * SLOTS) / servers.length) - 1;
    await commandOf(server, "CLUSTER", "ADDSLOTSRANGE", String(from), String(to));
    if (first === undefined || server === first) continue;
    const bus = String(await commandOf(first, "CONFIG", "GET", "cluster-port").then(lastOf));
    await commandOf(server, "CLUSTER", "MEET", "127.0.0.1", String(first.port), bus);
  }
  const end = performance.now() + READY_MS;
  for (const server of servers) {
    while (!String(await commandOf(server, "CLUSTER", "INFO")).includes("cluster_state:ok")) {
      if (performance.now() > end) throw new Error(`The cluster did not form:\n${server.log()}`);
      await sleep(LOOK_EVERY_MS);
    }
  }
}

/** The value of a setting, which is a list or a record by the version of the protocol. */
function lastOf(reply: unknown): unknown {
  return typeof reply === "object" && reply !== null ? Object.values(reply).at(-1) : reply;
}
