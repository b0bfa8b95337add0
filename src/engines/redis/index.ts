import "../../domain/node-version.ts";
import type { Engine } from "../../engine/port.ts";
import { type RedisClient, Wire } from "./client.ts";
import { loadRedis } from "./client-library.ts";
import { openClient } from "./connection.ts";
import { RedisEngine } from "./engine.ts";
import {
  checkRedisOptions,
  checkStoreOptions,
  parseRedisUrl,
  type Prefixed,
  type RedisOptions,
  type StoreOptions,
} from "./options.ts";
import { lazyWake } from "../../wake/lazy.ts";
import type { WakeAdapter } from "../../wake/port.ts";
import type { Wake } from "../../wake/wake.ts";
import { refuseUnfit, serverFacts } from "./server-facts.ts";
import { RedisWake } from "./wake.ts";
import { WakeSignals } from "./wake-signals.ts";

export type { RedisOptions, StoreOptions };
export type { ClusterClient, PlainClient, RedisClient, SentinelClient } from "./client.ts";

/** Any number of processes on any number of machines, with nothing to run but Redis or Valkey. */
export async function redisEngine(options: RedisOptions): Promise<Engine> {
  const checked = checkRedisOptions(options);
  return await openEngine(new Wire(await openClient(checked), true), checked);
}

/** On a client that the application has connected, and keeps: closing the engine leaves it open. For a server, a cluster or sentinels. */
export async function redisEngineOn(client: RedisClient, options: StoreOptions = {}): Promise<Engine> {
  const checked = checkStoreOptions(options);
  return await openEngine(new Wire(client, false), checked);
}

/** `redis://user:password@host:6379/0?prefix=baton`. */
export async function openRedisUrl(url: string, wake?: Wake): Promise<Engine> {
  return await redisEngine({ ...parseRedisUrl(url), wake });
}

/** Wakes for a store of another kind, over a client of its own, which connects in the background. */
export function openRedisWakeUrl(url: string): WakeAdapter {
  const checked = checkRedisOptions(parseRedisUrl(url));
  return lazyWake("redis", async (signal) => await ownWake(checked, signal));
}

/** Wakes for a store of another kind, over a client of the application's, which stays open, or over one of its own. */
export async function redisWake(client: RedisClient | string, options: StoreOptions = {}): Promise<WakeAdapter> {
  const { prefix } = checkStoreOptions(options);
  await loadRedis();
  if (typeof client !== "string") return new RedisWake(new Wire(client, false), prefix);
  const parsed = parseRedisUrl(client);
  return await ownWake(checkRedisOptions({ ...parsed, prefix: options.prefix ?? parsed.prefix }));
}

async function ownWake(options: RedisOptions & Prefixed, signal?: AbortSignal): Promise<WakeAdapter> {
  return new RedisWake(new Wire(await openClient(options, signal), true), options.prefix);
}

async function openEngine(wire: Wire, { prefix, wake }: StoreOptions & Prefixed): Promise<RedisEngine> {
  try {
    await loadRedis();
    refuseUnfit(await serverFacts(wire));
  } catch (error) {
    wire.close();
    throw error;
  }
  return new RedisEngine({ wire, prefix, ...(wake === undefined ? {} : { signals: new WakeSignals(wake) }) });
}
