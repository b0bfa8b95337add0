import "../../domain/node-version.ts";
import type { Pool } from "pg";
import { InvalidInput } from "../../domain/errors.ts";
import type { Engine } from "../../engine/port.ts";
import { lazyWake } from "../../wake/lazy.ts";
import type { WakeAdapter } from "../../wake/port.ts";
import type { Wake } from "../../wake/wake.ts";
import { postgresWake } from "./wake.ts";
import { ownConnections, pooledConnections } from "./connections.ts";
import { PostgresEngine } from "./engine.ts";
import {
  checkPostgresOptions,
  checkStoreOptions,
  parsePostgresUrl,
  type PostgresOptions,
  type StoreOptions,
  type SynchronousCommit,
} from "./options.ts";

export type { PostgresOptions, StoreOptions, SynchronousCommit };
export { postgresWake };

/** One to work over, and one that listens. */
const CONNECTIONS = 2;

/** Any number of processes on any number of machines, in a PostgreSQL database that you have. */
export async function postgresEngine(options: PostgresOptions): Promise<Engine> {
  const { connection } = checkPostgresOptions(options);
  return await PostgresEngine.open(ownConnections(connection), options);
}

/** On a pool that the application has, and keeps: it takes two of its connections, and closing the engine leaves it open. */
export async function postgresEngineOn(pool: Pool, options: StoreOptions = {}): Promise<Engine> {
  checkStoreOptions(options);
  const { max } = pool.options;
  if (max <= CONNECTIONS)
    throw new InvalidInput(
      "pool.max",
      max,
      `more than ${CONNECTIONS}: Baton keeps ${CONNECTIONS} connections for itself, and the application needs some too`,
    );
  return await PostgresEngine.open(pooledConnections(pool), options);
}

/** `postgres://user:password@host:5432/database?schema=baton`. */
export async function openPostgresUrl(url: string, wake?: Wake): Promise<Engine> {
  return await postgresEngine({ ...parsePostgresUrl(url), ...(wake === undefined ? {} : { wake }) });
}

/** Wakes for a store of another kind, over a connection that is made when it is first needed. */
export function openPostgresWakeUrl(url: string): WakeAdapter {
  const { connection } = parsePostgresUrl(url);
  return lazyWake("postgres", async () => postgresWake(typeof connection === "string" ? connection : url));
}
