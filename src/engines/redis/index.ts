import "../../domain/node-version.ts";
import type { Engine } from "../../engine/port.ts";
import { type RedisClient, Wire } from "./client.ts";
import { loadRedis } from "./client-library.ts";
import { openClient } from "./connection.ts";
import { RedisEngine } from "./engine.ts";
import {
  checkPrefix,
  checkRedisOptions,
  checkStoreOptions,
  parseRedisUrl,
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
  const prefix = checkPrefix(checkRedisOptions(options).prefix);
  return await openEngine(new Wire(await openClient(options), true), prefix, options.wake);
}

/** On a client that the application has connected, and keeps: closing the engine leaves it open. For a server, a cluster or sentinels. */
export async function redisEngineOn(client: RedisClient, options: StoreOptions = {}): Promise<Engine> {
  const prefix = checkPrefix(checkStoreOptions(options).prefix);
  return await openEngine(new Wire(client, false), prefix, options.wake);
}

/** `redis://user:password@host:6379/0?prefix=baton`. */
export async function openRedisUrl(url: string, wake?: Wake): Promise<Engine> {
  return await redisEngine({ ...parseRedisUrl(url), ...(wake === undefined ? {} : { wake }) });
}

/** Wakes for a store of another kind, over a client of its own, which connects in the background. */
export function openRedisWakeUrl(url: string): WakeAdapter {
  const parsed = parseRedisUrl(url);
  const prefix = checkPrefix(parsed.prefix);
  return lazyWake("redis", async (signal) => new RedisWake(new Wire(await openClient(parsed, signal), true), prefix));
}

/** Wakes for a store of another kind, over a client of the application's, which stays open, or over one of its own. */
export async function redisWake(client: RedisClient | string, options: StoreOptions = {}): Promise<WakeAdapter> {
  checkStoreOptions(options);
  await loadRedis();
  if (typeof client !== "string") return new RedisWake(new Wire(client, false), checkPrefix(options.prefix));
  const parsed = parseRedisUrl(client);
  const prefix = checkPrefix(options.prefix ?? parsed.prefix);
  return new RedisWake(new Wire(await openClient(parsed), true), prefix);
}

async function openEngine(wire: Wire, prefix: string, wake: Wake | undefined): Promise<RedisEngine> {
  try {
    await loadRedis();
    refuseUnfit(await serverFacts(wire));
  } catch (error) {
    wire.close();
    throw error;
  }
  return new RedisEngine({ wire, prefix, ...(wake === undefined ? {} : { signals: new WakeSignals(wake) }) });
}
