import { systemClock } from "../domain/clock.ts";
import { BatonError, InvalidInput } from "../domain/errors.ts";
import { checkParameters } from "../domain/options.ts";
import { parseDuration } from "../domain/duration.ts";
import type { Engine } from "../engine/port.ts";
import { Baton, type BatonOptions, checkBatonOptions, tellerOf } from "./baton.ts";
import type { WakeAdapter } from "../wake/port.ts";
import { Wake } from "../wake/wake.ts";
import { type LockStore, locksOnlyEngine } from "./locks/locks-only-engine.ts";
import { openPatiently } from "./open-patiently.ts";
import { takeWake } from "./wake-url.ts";

/**
 * Opens a store by URL (`memory:`, `sqlite:work.db`, `nats://localhost:4222`, `postgres://localhost/app`, `redis://localhost:6379`, for
 * locks alone `consul://localhost:8500`), by `$BATON_URL` if none is given, or takes an engine, or locks, that you made.
 * `?wake=nats://…` lets something else carry the wake-ups between processes that share a store.
 *
 *     const baton = await connect("sqlite:work.db");
 */
export async function connect(store?: string | Engine | LockStore, options: BatonOptions = {}): Promise<Baton> {
  checkBatonOptions(options);
  checkStore(store);
  if (store === undefined || typeof store === "string") {
    const { url, ...named } = takeWake(store ?? defaultUrl());
    const open = async (): Promise<Engine> => {
      const wake = await openWake(url, {
        ...options,
        wake: options.wake ?? named.wake,
        wakePrefix: options.wakePrefix ?? named.wakePrefix,
      });
      try {
        return await openEngine(url, options, wake);
      } catch (error) {
        await wake?.close();
        throw error;
      }
    };
    if (options.waitForStore === undefined) return new Baton(await open(), options);
    const { engine, outages } = await openPatiently(open, parseDuration(options.waitForStore, "waitForStore"), options);
    return new Baton(engine, options, outages);
  }
  if (options.wake !== undefined) throw new InvalidInput("wake", options.wake, "left to the engine that is given");
  if (options.wakePrefix !== undefined)
    throw new InvalidInput("wakePrefix", options.wakePrefix, "left to the engine that is given");
  if (options.waitForStore !== undefined)
    throw new InvalidInput("waitForStore", options.waitForStore, "left to whoever opened the engine that is given");
  return new Baton("acquire" in store ? locksOnlyEngine(store) : store, options);
}

function checkStore(store: string | Engine | LockStore | undefined): void {
  if (store === undefined || typeof store === "string" || (typeof store === "object" && store !== null)) return;
  throw new InvalidInput("store", store, "a URL such as sqlite:work.db, or an engine");
}

function defaultUrl(): string {
  const url = process.env["BATON_URL"];
  if (url !== undefined && url !== "") return url;
  throw new InvalidInput("store", undefined, "a URL such as sqlite:work.db, as an argument or in $BATON_URL");
}

/** Drivers are loaded only here, and only the one that is asked for. */
async function openEngine(url: string, options: BatonOptions, wake: Wake | undefined): Promise<Engine> {
  const scheme = schemeOf(url);
  switch (scheme) {
    case "memory": {
      checkMemoryUrl(url);
      const { memoryEngine } = await import("../engines/memory/index.ts");
      return memoryEngine({ clock: options.clock ?? systemClock });
    }
    case "sqlite": {
      const { openSqliteUrl } = await import("../engines/sqlite/index.ts");
      return await openSqliteUrl(url, wake);
    }
    case "nats":
    case "tls":
      return await openNats(url);
    case "redis":
    case "rediss":
      return await openRedis(url, wake);
    case "postgres":
    case "postgresql":
      return await openPostgres(url, wake);
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

/** There is one in each connection, and nothing to say about it. */
function checkMemoryUrl(url: string): void {
  const [, location = "", query = ""] = /^memory:(?:\/\/)?([^?]*)(?:\?(.*))?$/is.exec(url) ?? [];
  checkParameters(new URLSearchParams(query).keys(), []);
  if (location !== "")
    throw new InvalidInput(
      "store",
      url,
      "memory: alone: such a store has no name, and no other connection can share it",
    );
}

/** Stores that can be woken by something else than themselves. */
const WAKEABLE: readonly (string | undefined)[] = ["sqlite", "postgres", "postgresql", "redis", "rediss"];

/** What carries wakes, by the scheme of its URL. */
const CARRIERS: Readonly<Record<string, (url: string) => Promise<WakeAdapter>>> = {
  memory: async () => (await import("../wake/memory.ts")).memoryWake(),
  nats: openNatsWake,
  tls: openNatsWake,
  redis: openRedisWake,
  rediss: openRedisWake,
  postgres: openPostgresWake,
  postgresql: openPostgresWake,
};

async function openWake(store: string, options: BatonOptions): Promise<Wake | undefined> {
  const { wake, wakePrefix, clock } = options;
  if (wake === undefined) {
    if (wakePrefix !== undefined) throw new InvalidInput("wakePrefix", wakePrefix, "used together with wake");
    return undefined;
  }
  if (!WAKEABLE.includes(schemeOf(store)))
    throw new InvalidInput("wake", schemeOf(store), `a store that has use for it: ${WAKEABLE.join(", ")}`);
  const adapter = typeof wake === "string" ? await openCarrier(wake) : wake;
  return new Wake(adapter, {
    onEvent: tellerOf(options),
    ...(wakePrefix === undefined ? {} : { prefix: wakePrefix }),
    ...(clock === undefined ? {} : { clock }),
  });
}

async function openCarrier(url: string): Promise<WakeAdapter> {
  const open = CARRIERS[schemeOf(url) ?? ""];
  if (open !== undefined) return await open(url);
  throw new InvalidInput("wake", schemeOf(url), `a URL that begins with ${Object.keys(CARRIERS).join(":, ")}:`);
}

/** Carriers connect in the background, where nobody would hear that a package is missing: it is loaded before. */
async function openNatsWake(url: string): Promise<WakeAdapter> {
  const { loadNats } = await import("../engines/nats/client-library.ts");
  await loadNats();
  const { openNatsWakeUrl } = await import("../engines/nats/wake.ts");
  return openNatsWakeUrl(url);
}

async function openRedisWake(url: string): Promise<WakeAdapter> {
  const { loadRedis } = await import("../engines/redis/client-library.ts");
  await loadRedis();
  const { openRedisWakeUrl } = await import("../engines/redis/index.ts");
  return openRedisWakeUrl(url);
}

async function openPostgresWake(url: string): Promise<WakeAdapter> {
  const { loadPg } = await import("../engines/postgres/client-library.ts");
  await loadPg();
  const { openPostgresWakeUrl } = await import("../engines/postgres/index.ts");
  return openPostgresWakeUrl(url);
}

function schemeOf(url: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
}

async function openNats(url: string): Promise<Engine> {
  const { openNatsUrl } = await import("../engines/nats/index.ts");
  return await openNatsUrl(url);
}

async function openRedis(url: string, wake: Wake | undefined): Promise<Engine> {
  const { openRedisUrl } = await import("../engines/redis/index.ts");
  return await openRedisUrl(url, wake);
}

async function openPostgres(url: string, wake: Wake | undefined): Promise<Engine> {
  const { openPostgresUrl } = await import("../engines/postgres/index.ts");
  return await openPostgresUrl(url, wake);
}

async function openConsul(url: string): Promise<Engine> {
  const { openConsulUrl } = await import("../consul/index.ts");
  return locksOnlyEngine(await openConsulUrl(url));
}
