/** The real store of a run, and what can be done to it. */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { startNatsCluster } from "../servers/nats-cluster.ts";
import { ask, serverInfo } from "../servers/nats-probe.ts";
import { type NatsServer, startNatsServer } from "../servers/nats-server.ts";
import { startPostgres } from "../servers/postgres.ts";
import { startRedisServer } from "../servers/redis-server.ts";
import { QUEUE, type Store } from "./scene.ts";

export interface RunningStore extends AsyncDisposable {
  /** The ports of its servers; none for a file. */
  readonly ports: readonly number[];
  url(ports: readonly number[]): string;
  /** Kills a server, the stream's leader if there are several, and starts it again. Undefined: there is no server to kill. */
  readonly crash: ((awayMs: number) => Promise<void>) | undefined;
}

const LOOK_EVERY_MS = 50;
/** A follower waits four to nine seconds before it wants to lead. */
const LEADER_WITHIN_MS = 20_000;

export async function startStore(store: Store, folder: string): Promise<RunningStore> {
  switch (store) {
    case "sqlite":
      return {
        ports: [],
        url: () => `sqlite:${join(folder, "store.db")}`,
        crash: undefined,
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
    case "nats":
      return oneServer(await startNatsServer(), (port) => `nats://127.0.0.1:${port}`);
    case "postgres":
      return oneServer(await startPostgres(), (port) => `postgres://baton@127.0.0.1:${port}/postgres`);
    case "redis":
      return oneServer(await startRedisServer(), (port) => `redis://127.0.0.1:${port}`);
    case "nats-cluster":
      return await startCluster();
  }
}

interface Server {
  readonly port: number;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

function oneServer(server: Server, url: (port: number) => string): RunningStore {
  return {
    ports: [server.port],
    url: ([port]) => url(port ?? server.port),
    crash: async (awayMs) => {
      await server.kill();
      await wait(awayMs);
      await server.restart();
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

async function startCluster(): Promise<RunningStore> {
  // Clients that heard of the servers' own addresses would go around the proxy.
  const cluster = await startNatsCluster({ advertise: false });
  return {
    ports: cluster.servers.map(({ port }) => port),
    url: (ports) => `nats://${ports.map((port) => `127.0.0.1:${port}`).join(",")}?replicas=${cluster.servers.length}`,
    crash: async (awayMs) => {
      const leader = await leaderOf(cluster.servers);
      await leader.kill();
      await wait(awayMs);
      await leader.restart();
      // Until somebody leads again the fault is not over.
      await leaderOf(cluster.servers);
    },
    [Symbol.asyncDispose]: () => cluster.stop(),
  };
}

/** The server that leads the queue's stream, as soon as there is one. */
async function leaderOf(servers: readonly NatsServer[]): Promise<NatsServer> {
  const end = performance.now() + LEADER_WITHIN_MS;
  for (;;) {
    for (const { port, isRunning } of servers) {
      if (!isRunning) continue;
      const answer = await ask(port, `$JS.API.STREAM.INFO.baton-${QUEUE}`).catch(() => undefined);
      const name = leaderNamed(answer);
      if (name === undefined) continue;
      for (const server of servers) {
        // Another fault may kill one in this very moment.
        const info = server.isRunning ? await serverInfo(server.port).catch(() => undefined) : undefined;
        if (info?.server_name === name) return server;
      }
    }
    if (performance.now() > end) throw new Error(`The stream had no leader for ${LEADER_WITHIN_MS} ms.`);
    await wait(LOOK_EVERY_MS);
  }
}

function leaderNamed(answer: unknown): string | undefined {
  if (typeof answer !== "object" || answer === null || !("cluster" in answer)) return undefined;
  const { cluster } = answer;
  if (typeof cluster !== "object" || cluster === null || !("leader" in cluster)) return undefined;
  return typeof cluster.leader === "string" ? cluster.leader : undefined;
}
