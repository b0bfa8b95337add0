import { systemClock } from "../domain/clock.ts";
import { BatonError, InvalidInput } from "../domain/errors.ts";
import type { Engine } from "../engine/port.ts";
import { Baton, type BatonOptions } from "./baton.ts";
import { type LockStore, locksOnlyEngine } from "./locks/locks-only-engine.ts";

/**
 * Opens a store by URL (`memory:`, `sqlite:work.db`, `nats://localhost:4222`, `postgres://localhost/app`, `redis://localhost:6379`, for
 * locks alone `consul://localhost:8500`), by
 * `$BATON_URL` if none is given, or takes an engine, or locks, that you made.
 *
 *     const baton = await connect("sqlite:work.db");
 */
export async function connect(store?: string | Engine | LockStore, options: BatonOptions = {}): Promise<Baton> {
  if (store === undefined || typeof store === "string") {
    return new Baton(await openEngine(store ?? defaultUrl(), options), options);
  }
  return new Baton("acquire" in store ? locksOnlyEngine(store) : store, options);
}

function defaultUrl(): string {
  const url = process.env["BATON_URL"];
  if (url !== undefined && url !== "") return url;
  throw new InvalidInput("store", undefined, "a URL such as sqlite:work.db, as an argument or in $BATON_URL");
}

/** Drivers are loaded only here, and only the one that is asked for. */
async function openEngine(url: string, options: BatonOptions): Promise<Engine> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case "memory": {
      const { memoryEngine } = await import("../engines/memory/index.ts");
      return memoryEngine({ clock: options.clock ?? systemClock });
    }
    case "sqlite": {
      const { openSqliteUrl } = await import("../engines/sqlite/index.ts");
      return openSqliteUrl(url);
    }
    case "nats":
    case "tls":
      return await openNats(url);
    case "postgres":
    case "postgresql":
      return await openPostgres(url);
    case "redis":
    case "rediss":
      return await openRedis(url);
    case "consul":
    case "consul+https":
      return await openConsul(url);
    case undefined:
      throw new InvalidInput(
        "store",
        url,
        "a URL that begins with its kind of store, such as sqlite:work.db or memory:",
      );
    default:
      throw new BatonError(
        "ENGINE_MISSING",
        `There is no engine for ${scheme}: stores in this version. Use memory:, sqlite:FILE, nats://HOST, postgres://HOST/DATABASE, redis://HOST or consul://HOST, or pass an engine of your own to connect().`,
      );
  }
}

async function openNats(url: string): Promise<Engine> {
  const { openNatsUrl } = await needing("@nats-io/transport-node", "NATS", () => import("../engines/nats/index.ts"));
  return await openNatsUrl(url);
}

async function openPostgres(url: string): Promise<Engine> {
  const { openPostgresUrl } = await needing("pg", "PostgreSQL", () => import("../engines/postgres/index.ts"));
  return await openPostgresUrl(url);
}

async function openRedis(url: string): Promise<Engine> {
  const { openRedisUrl } = await needing("@redis/client", "Redis", () => import("../engines/redis/index.ts"));
  return await openRedisUrl(url);
}

async function openConsul(url: string): Promise<Engine> {
  const { openConsulUrl } = await needing("undici", "Consul", () => import("../consul/index.ts"));
  return locksOnlyEngine(await openConsulUrl(url));
}

/** A client library is the application's choice to install; without it the error says so. */
async function needing<T>(library: string, store: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND")) throw cause;
    throw new BatonError(
      "ENGINE_MISSING",
      `Stores on ${store} need the package ${library}, which is not installed. Nothing was done. Run: npm install ${library}`,
      { cause },
    );
  }
}
